// What the engine asks of the device beside the CPU. src/gpu answers: with kernels, or in words when the
// build has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "autograd/device.hpp"
#include "autograd/kernels.hpp"
#include "autograd/raw_memory.hpp"

namespace tally::peer {

const std::string& absent();  // why there is no such device; empty when there is one
std::uint64_t waits();        // how often the host has waited for it

// Each throws an Error with those words when there is none.
const memory::Raw& raw();
void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes);
template <class S>
const Kernels<S>& kernels();

// ---- capturing: what is handed over is kept in a graph instead of being run, to run as often as one likes
// ----
//
// Meanwhile an upload, a wait and memory that is not there yet are Errors. One thread at a time uses the
// device.
struct Graph;
bool capturing();
void begin_capture();
Graph* end_capture();
void abandon_capture() noexcept;
void replay(const Graph& graph);
void discard(Graph* graph) noexcept;

// Queues tally::decide on what lies on the device.
template <class S>
void decide(const Conditions<S>& conditions, Decisions<S>* decisions);

}  // namespace tally::peer
