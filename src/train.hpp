// tally for training: everything between a loss and an updated parameter, in one line.
#pragma once

#include "train/average.hpp"
#include "train/batches.hpp"
#include "train/clip.hpp"
#include "train/fashion.hpp"
#include "train/idx.hpp"
#include "train/optimizer.hpp"
#include "train/schedule.hpp"
#include "train/training_state.hpp"
