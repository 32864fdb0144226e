// tally for training: everything between a loss and an updated parameter, in one line.
#pragma once

#include "train/accumulate.hpp"
#include "train/average.hpp"
#include "train/batches.hpp"
#include "train/clip.hpp"
#include "train/fashion.hpp"
#include "train/idx.hpp"
#include "train/layers.hpp"
#include "train/module.hpp"
#include "train/optimizer.hpp"
#include "train/safetensors.hpp"
#include "train/schedule.hpp"
#include "train/state_file.hpp"
#include "train/training_state.hpp"
#include "train/weights.hpp"
#include "train/window.hpp"
