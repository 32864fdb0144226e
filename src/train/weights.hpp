// A model's parameters and buffers as a safetensors file, by the names that PyTorch uses.
#pragma once

#include <optional>
#include <string>

#include "tally/train/module.hpp"

namespace tally {

// tally's matrices are (in, out); PyTorch's are (out, in).
enum class WeightOrder { tally, pytorch };

// The file says which order it is in, and carries a checksum of all its bytes.
template <class S>
void save_weights(const std::string& path, Module<S>& model, WeightOrder order = WeightOrder::tally);

// All or nothing: what is missing, too much or of another form is an Error that names all of it, and the
// model is as it was; also where memory runs out. Files of other programs often do not say which order they
// are in, and a square matrix does not show it: then it must be named. A file that says another is refused.
template <class S>
void load_weights(const std::string& path, Module<S>& model, std::optional<WeightOrder> order = {});

}  // namespace tally
