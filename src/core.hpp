// Includes the core of tally: arrays, variables, arithmetic, products, sums, shapes, losses and sgd_step().
// The header tally.hpp includes the other public headers, and train.hpp includes the headers for training.
#pragma once

#include "tally/array/array.hpp"
#include "tally/array/op_options.hpp"
#include "tally/array/shape.hpp"
#include "tally/autograd/instances/core_ops.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/autograd/var.hpp"
#include "tally/base/error.hpp"
