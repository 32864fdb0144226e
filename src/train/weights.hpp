// Saves and loads a model's parameters and buffers as a safetensors file, with the names that PyTorch uses.
#pragma once

#include <optional>
#include <string>

#include "tally/train/module.hpp"

namespace tally {

// Matrices in tally's order are (in, out), and matrices in PyTorch's order are (out, in).
enum class WeightOrder { tally, pytorch };

// Saves the weights. The file contains their order and a checksum of all its bytes.
template <class S>
void save_weights(const std::string& path, Module<S>& model, WeightOrder order = WeightOrder::tally);

// Loads all weights, or throws and does not change the model. The Error lists all missing and unknown tensors
// and all of another shape or type. Files of other programs often do not declare their order, and a square
// matrix does not show it, so the caller must name it. Throws if the file declares another order.
template <class S>
void load_weights(const std::string& path, Module<S>& model, std::optional<WeightOrder> order = {});

}  // namespace tally
