// tally for training: everything between a loss and an updated parameter, in one line.
#pragma once

#include "train/layers.hpp"
#include "train/module.hpp"
#include "train/safetensors.hpp"
#include "train/state_file.hpp"
#include "train/training_state.hpp"
#include "train/weights.hpp"
