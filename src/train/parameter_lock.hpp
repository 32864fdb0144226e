// While a Window accumulates gradients, only this Window may change the parameters and their gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Any other code that changes a locked parameter throws an Error (var.hpp). A write that bypasses the lock
// changes the version of the buffer, and the next call of the Window throws.
template <class S> class ParameterLock {
public:
    // internal: the window calls backward(). external: the user calls backward(), then after_backward().
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
    void clear_gradients();  // clears the gradients that no other window has locked
    void release();

    void snapshot();                                  // records address and version of values and gradients
    void require_unchanged(const char* doing) const;  // throws if an address or version differs
    bool is_dirty() const;  // whether backward() reached a parameter after snapshot()

    void note_values() noexcept;  // records address and version of the values
    bool written() const;         // whether a value has changed since note_values()

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
    std::vector<Places> left_;  // recorded by snapshot()
    std::vector<Place> noted_;  // recorded by note_values()
    bool on_ = false;
    Mode mode_ = Mode::internal;
};

extern template class ParameterLock<float>;
extern template class ParameterLock<double>;

}  // namespace tally::detail
