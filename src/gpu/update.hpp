// Defines the kernel bodies of the optimizers. One kernel launch processes many tensors.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "tally/gpu/team.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::gpu {

inline constexpr std::size_t tensors_at_once = 64;  // the arguments of a launch have at most 4 KiB

// Concatenates up to `tensors_at_once` tensors, so that one index addresses all of their elements.
template <class S> struct Tensors {
    std::array<Update<S>, tensors_at_once> list;
    std::array<std::size_t, tensors_at_once> ends;  // end of each tensor in the concatenation
    std::size_t count = 0, size = 0;

    struct Place {
        std::size_t tensor, element;
    };
    TALLY_HOST_DEVICE constexpr Place find(std::size_t i) const {
        std::size_t low = 0, high = count - 1;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (i < ends[middle])
                high = middle;
            else
                low = middle + 1;
        }
        return {low, i - (ends[low] - list[low].size)};
    }
};

// Calls launch() for groups of at most `tensors_at_once` tensors.
template <class S, class Launch> void in_launches(std::span<const Update<S>> list, Launch launch) {
    Tensors<S> tensors;
    const auto send = [&] {
        if (tensors.size > 0) launch(tensors);
        tensors.count = tensors.size = 0;
    };
    for (const Update<S>& u : list) {
        tensors.list[tensors.count] = u;
        tensors.ends[tensors.count] = tensors.size += u.size;
        if (++tensors.count == tensors_at_once) send();
    }
    send();
}

template <class S, class Step> struct UpdateBody {
    Tensors<S> tensors;
    Step step;
    TALLY_HOST_DEVICE void operator()(std::size_t i) const {
        const auto [tensor, element] = tensors.find(i);
        update_element(step, tensors.list[tensor], element);
    }
};

template <class On, class Step, class S> void update(std::span<const Update<S>> list, const Step& step) {
    static_assert(sizeof(UpdateBody<S, Step>) <= 4000);
    in_launches(list, [&](const Tensors<S>& tensors) {
        On::each("update", tensors.size, UpdateBody<S, Step>{tensors, step});
    });
}

// Each team sums `piece` elements, and a final team adds the sums in a fixed order.
inline constexpr std::size_t piece = 8192;

template <class S> struct MeasureBody {
    Tensors<S> tensors;
    bool squares;
    double* found;  // two numbers per piece
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t which) const {
        const std::size_t from = which * piece, left = tensors.size - from, n = left < piece ? left : piece;
        const auto number = [&](std::size_t i) {
            const auto [tensor, element] = tensors.find(from + i);
            return static_cast<double>(tensors.list[tensor].gradient[element]);
        };
        const auto square = [&](std::size_t i) {
            const double x = number(i);
            return x * x;
        };
        const double sum = squares ? sum_in_team<double>(team, n, square) : 0;
        const double odd = sum_in_team<double>(team, n, [&](std::size_t i) {
            const double x = number(i), none = x - x;  // 0, or NaN for infinity and NaN
            return none == none ? 0.0 : 1.0;
        });
        team.alone([&] {
            found[2 * which] = sum;
            found[2 * which + 1] = odd;
        });
    }
};

struct GatherPiecesBody {
    const double* pieces;
    double* found;
    std::size_t count;
    template <class T> TALLY_HOST_DEVICE void operator()(T& team, std::size_t which) const {
        const double total =
            sum_in_team<double>(team, count, [&](std::size_t i) { return pieces[2 * i + which]; });
        team.alone([&] { found[which] = count ? total : 0; });
    }
};

template <class On, class S> void measure(std::span<const Update<S>> list, bool squares, double* found) {
    const auto pieces_of = [](const Tensors<S>& tensors) { return (tensors.size + piece - 1) / piece; };
    std::size_t pieces = 0;
    in_launches(list, [&](const Tensors<S>& tensors) { pieces += pieces_of(tensors); });
    const typename On::template Scratch<double> parts(2 * pieces);
    std::size_t done = 0;
    in_launches(list, [&](const Tensors<S>& tensors) {
        On::template teams<block>("measure", pieces_of(tensors),
                                  MeasureBody<S>{tensors, squares, parts.data() + 2 * done});
        done += pieces_of(tensors);
    });
    On::template teams<block>("measure, total", 2, GatherPiecesBody{parts.data(), found, pieces});
}

template <class On, class S> void install_update(Kernels<S>& t) {
    t.sgd = update<On, SgdStep<S>, S>;
    t.adam = update<On, AdamStep<S>, S>;
    t.average = update<On, AverageStep<S>, S>;
    t.limit = update<On, LimitStep<S>, S>;
    t.measure = measure<On, S>;
}

}  // namespace tally::gpu
