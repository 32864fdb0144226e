// A model's parameters and buffers as a safetensors file, by the names that PyTorch uses.
#pragma once

#include <string>

#include "train/module.hpp"

namespace tally {

// tally's matrices are (in, out); PyTorch's are (out, in).
enum class WeightOrder { tally, pytorch };

template <class S>
void save_weights(const std::string& path, Module<S>& model, WeightOrder order = WeightOrder::tally);

// All or nothing: what is missing, too much or of another form is an Error that names all of it, and the
// model is as it was.
template <class S>
void load_weights(const std::string& path, Module<S>& model, WeightOrder order = WeightOrder::tally);

}  // namespace tally
