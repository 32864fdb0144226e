// Hold: while micro-batches are in a window it alone changes its parameters and their gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"

namespace tally::detail {

// Operations on a parameter that is held are refused where they happen (var.hpp). Any other write that raises its
// memory's version is noticed at the window's next call.
template <class S> class Hold {
public:
    // Others go backward through micro-batches and tell the window, or the window does so alone.
    enum class Sweeps { theirs, own };

    explicit Hold(const std::vector<Var<Array<S>>>& parameters) : parameters_(parameters) {
        left_.reserve(parameters.size());
        noted_.resize(parameters.size());
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    bool on() const { return on_; }
    Sweeps sweeps() const { return sweeps_; }
    void take(Sweeps sweeps);
    void untouch();  // all gradients, but those that another window holds
    void release();

    void look();                                   // remembers where all is, and how often it was changed
    void expect_as_left(const char* doing) const;  // when it looked
    bool met() const;                              // whether a backward() has reached a parameter since

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
    Sweeps sweeps_ = Sweeps::own;
};

extern template class Hold<float>;
extern template class Hold<double>;

}  // namespace tally::detail
