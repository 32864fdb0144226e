// NumPy's .npy files: arrays to and from other programs. Little-endian float32, float64 and int32,
// in C order.
#pragma once

#include <string>

#include "tally/array/array.hpp"

namespace tally {

// Writes format version 1.0; the file appears whole or not at all.
template <class S> void save_npy(const std::string& path, const Array<S>& array);

// Reads versions 1.0 and 2.0. The file must hold exactly type S (int32 also takes int64 whose numbers fit).
// What is wrong with a file is an Error that names it and the byte.
template <class S> Array<S> load_npy(const std::string& path);

}  // namespace tally
