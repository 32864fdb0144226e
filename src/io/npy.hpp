// save_npy() and load_npy() exchange arrays with other programs by NumPy's .npy files.
//
// Both functions support little-endian float32, float64 and int32 in C order.
#pragma once

#include <string>

#include "tally/array/array.hpp"

namespace tally {

// Writes a file of format version 1.0, completely or not at all.
template <class S> void save_npy(const std::string& path, const Array<S>& array);

// Reads versions 1.0 and 2.0. The file must hold numbers of type S. int64 is converted to int32 if all
// numbers fit. Throws an Error that names the file and the byte if the file is invalid.
template <class S> Array<S> load_npy(const std::string& path);

}  // namespace tally
