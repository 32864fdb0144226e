// An `OnDevice` launches kernel bodies on the GPU. One thread processes an index, and one team (a thread, a
// warp or a block) processes a row. Only .cu files include this header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "tally/gpu/cuda.hpp"
#include "tally/gpu/format.hpp"
#include "tally/gpu/scratch.hpp"
#include "tally/gpu/table.hpp"

namespace tally::gpu {

inline constexpr std::size_t most_blocks = std::size_t{1} << 20;  // for more elements, each thread loops

// A `WarpTeam` is a warp. In an ordered sum, each lane computes one term, and lane 0 adds the terms.
struct WarpTeam {
    static constexpr std::size_t lanes = warp;
    static constexpr unsigned everyone = 0xFFFFFFFFu;
    unsigned lane;

    template <class F> __device__ void each(std::size_t n, F f) {
        for (std::size_t i = lane; i < n; i += lanes) f(i);
    }
    template <class T, class Combine, class F>
    __device__ T fold(std::size_t n, T nothing, Combine combine, F f) {
        T total = nothing;
        for (std::size_t i = lane; i < n; i += lanes) total = combine(total, f(i));
        for (unsigned half = lanes / 2; half > 0; half /= 2)
            total = combine(total, __shfl_down_sync(everyone, total, half));
        return __shfl_sync(everyone, total, 0);
    }
    template <class S, class F> __device__ void add_in_order(std::size_t n, Into<S[]> place, F f) {
        S total = lane == 0 ? start_of(place, 0, n) : S(0);
        for (std::size_t first = 0; first < n; first += lanes) {
            const S term = first + lane < n ? f(first + lane) : S(0);
            const unsigned count = static_cast<unsigned>(n - first < lanes ? n - first : lanes);
            for (unsigned l = 0; l < count; ++l) total += __shfl_sync(everyone, term, static_cast<int>(l));
        }
        if (lane == 0) *place.dst = total;
    }
    template <class F> __device__ void alone(F f) {
        if (lane == 0) f();
    }
};

struct BlockTeam {
    static constexpr std::size_t lanes = block;
    unsigned lane;
    unsigned char* shared;  // one number of up to eight bytes per lane

    template <class F> __device__ void each(std::size_t n, F f) {
        for (std::size_t i = lane; i < n; i += lanes) f(i);
    }
    template <class T, class Combine, class F>
    __device__ T fold(std::size_t n, T nothing, Combine combine, F f) {
        static_assert(sizeof(T) <= 8);
        T* const numbers = reinterpret_cast<T*>(shared);
        T total = nothing;
        for (std::size_t i = lane; i < n; i += lanes) total = combine(total, f(i));
        __syncthreads();  // other lanes may still read the previous result
        numbers[lane] = total;
        for (unsigned half = lanes / 2; half > 0; half /= 2) {
            __syncthreads();
            if (lane < half) numbers[lane] = combine(numbers[lane], numbers[lane + half]);
        }
        __syncthreads();
        return numbers[0];
    }
    template <class F> __device__ void alone(F f) {
        if (lane == 0) f();
    }
};

// Kernels have no __launch_bounds__, because ptxas then spills registers of some kernels (tests/ptx/targets).
template <class Body> __global__ void run_each(std::size_t n, const __grid_constant__ Body body) {
    for (std::size_t i = blockIdx.x * block + threadIdx.x; i < n; i += gridDim.x * block) body(i);
}

template <std::size_t lanes, class Body>
__global__ void run_teams(std::size_t count, const __grid_constant__ Body body) {
    constexpr std::size_t together = block / lanes;  // teams in a block
    const std::size_t first = blockIdx.x * together + threadIdx.x / lanes;
    for (std::size_t i = first; i < count; i += gridDim.x * together) {
        if constexpr (lanes == 1) {
            SingleThread team;
            body(team, i);
        } else if constexpr (lanes == warp) {
            WarpTeam team{threadIdx.x % unsigned(warp)};
            body(team, i);
        } else {
            static_assert(lanes == block);
            __shared__ alignas(8) unsigned char shared[block * 8];
            BlockTeam team{threadIdx.x, shared};
            body(team, i);
        }
    }
}

struct OnDevice {
    template <class Body> static void each(const char* name, std::size_t n, const Body& body) {
        if (n == 0) return;
        run_each<<<blocks_for((n + block - 1) / block), unsigned(block), 0, stream()>>>(n, body);
        started(name, body, n, "elements");
    }

    template <std::size_t lanes, class Body>
    static void teams(const char* name, std::size_t count, const Body& body) {
        if (count == 0) return;
        constexpr std::size_t together = block / lanes;
        run_teams<lanes>
            <<<blocks_for((count + together - 1) / together), unsigned(block), 0, stream()>>>(count, body);
        started(name, body, count, lanes == 1 ? "threads" : lanes == warp ? "warps" : "blocks");
    }

    static Products products() { return host().products(); }
    template <class S> static void multiply(const Product& p, const S* a, const S* b, Into<S[]> c);

    template <class S> using Scratch = LedgerScratch<S>;

    static WrongLabel* wrong_label();  // in mapped memory; the host reads it whenever it waits
    static void throw_wrong_label() {}

private:
    static unsigned blocks_for(std::size_t wanted) {
        return static_cast<unsigned>(std::min(wanted, most_blocks));
    }
    template <class Body>
    static void started(const char* name, const Body& body, std::size_t count, const char* of) {
        if (const cudaError_t failed = cudaGetLastError(); failed != cudaSuccess) [[unlikely]]
            check(failed, "launch", std::string(name) + " " + sizes_of(body, count, of));
        launched(name);
    }
};

}  // namespace tally::gpu
