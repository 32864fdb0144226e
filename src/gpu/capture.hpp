// What a captured graph cannot hold, in words; and the body that judges gradients between two launches of it.
#pragma once

#include <cstddef>
#include <string>

#include "tally/base/error.hpp"
#include "tally/gpu/host_device.hpp"
#include "tally/gpu/loss.hpp"
#include "tally/kernels/updates.hpp"

namespace tally::gpu {

inline void refuse_upload(bool capturing, std::size_t bytes) {
    if (capturing)
        throw Error("[capture] " + std::to_string(bytes) +
                    " bytes of the host's memory cannot go to the device while a window is captured: every "
                    "replay would send them again; put the inputs there before, and refill() them");
}

inline void refuse_wait(bool capturing, const std::string& what) {
    if (capturing)
        throw Error("[capture] " + what +
                    " makes the host wait, but nothing runs while a window is captured; read after replay()");
}

inline void refuse_fresh_memory(bool capturing, std::size_t bytes) {
    if (capturing)
        throw Error(
            "[capture] the window asks for " + std::to_string(bytes) +
            " bytes more than the window before it; one that is captured must do the same every time");
}

inline void refuse_giving_back(bool capturing, std::size_t bytes) {
    if (capturing)
        throw Error("[capture] " + std::to_string(bytes) +
                    " bytes cannot be given back to the device while a window is captured, whose graph may "
                    "hold their address; drop_cache() before");
}

template <class S> struct DecideBody {
    Conditions<S> conditions;
    const WrongLabel* wrong;
    Decisions<S>* decisions;
    TALLY_HOST_DEVICE void operator()(std::size_t) const { decide(*decisions, conditions, wrong->found); }
};

}  // namespace tally::gpu
