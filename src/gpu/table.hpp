// Builds the table of GPU kernels for a class `On` that launches kernel bodies.
//
// each(name, n, body) runs body(i) for i < n in any order. teams<lanes>(name, count, body) runs body(team, i)
// for i < count. multiply(p, a, b, c) is a matrix product of the BLAS library, for large products with
// Products::blas. Launches run in order. OnDevice uses a CUDA stream, and tests use OnHost instead.
#pragma once

#include "tally/gpu/batch_norm.hpp"
#include "tally/gpu/dropout.hpp"
#include "tally/gpu/elementwise.hpp"
#include "tally/gpu/loss.hpp"
#include "tally/gpu/matmul.hpp"
#include "tally/gpu/movement.hpp"
#include "tally/gpu/norm.hpp"
#include "tally/gpu/reduce.hpp"
#include "tally/gpu/softmax.hpp"
#include "tally/gpu/update.hpp"
#include "tally/gpu/windows.hpp"
#include "tally/kernels/families.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

template <class On, class S> Kernels<S> table() {
    Kernels<S> t{};
#define TALLY_INSTALL(family) install_##family<On>(t);
    TALLY_KERNEL_FAMILIES(TALLY_INSTALL)
#undef TALLY_INSTALL
    return t;
}

}  // namespace tally::gpu
