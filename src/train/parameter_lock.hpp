// ParameterLock: while micro-batches are in a window it alone changes its parameters and their gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Operations on a parameter that is held are refused where they happen (var.hpp). Any other write that raises its
// memory's version is noticed at the window's next call.
template <class S> class ParameterLock {
public:
    // Others go backward through micro-batches and tell the window, or the window does so alone.
    enum class Mode { external, internal };

    explicit ParameterLock(const std::vector<Var<Array<S>>>& parameters) : parameters_(parameters) {
        left_.reserve(parameters.size());
        noted_.resize(parameters.size());
    }
    ParameterLock(const ParameterLock&) = delete;
    ParameterLock& operator=(const ParameterLock&) = delete;

    bool on() const { return on_; }
    Mode mode() const { return mode_; }
    void lock(Mode mode);
    void clear_gradients();  // all gradients, but those that another window holds
    void release();

    void snapshot();                                  // remembers where all is, and how often it was changed
    void require_unchanged(const char* doing) const;  // when it looked
    bool is_dirty() const;                            // whether a backward() has reached a parameter since

    void note_values() noexcept;  // remembers where the parameters' numbers are
    bool written() const;         // whether one was written since

private:
    struct Place {
        const void* storage;
        std::uint32_t version;
        bool operator==(const Place&) const = default;
    };
    struct Places {
        Place value, gradient;
    };
    static Place place_of(const Array<S>& array) { return {array.storage(), version_of(array)}; }

    const std::vector<Var<Array<S>>>& parameters_;
    std::vector<Places> left_;
    std::vector<Place> noted_;  // values, by note_values()
    bool on_ = false;
    Mode mode_ = Mode::internal;
};

extern template class ParameterLock<float>;
extern template class ParameterLock<double>;

}  // namespace tally::detail
