// A RandomGraph records random operations on random arrays, for tests of reports about graphs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autograd/support.hpp"
#include "tally/autograd/ops/custom.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/layer_norm.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"

namespace tally::test {

// All parameters and results are square matrices. No recorded operation is destroyed before drop_results().
class RandomGraph {
public:
    RandomGraph(Random& random, std::int64_t extent) : random_(random), shape_{extent, extent} {
        for (int i = 0; i < 3; ++i) all_.push_back(parameter(random.array<float>(shape_)));
        all_.push_back(constant(random.array<float>(shape_)));
    }

    void grow() {
        switch (random_.whole(0, 11)) {
            case 0:
                return add(any() + any());
            case 1:
                return add(any() * any());
            case 2:
                return add(tanh(any()));
            case 3:
                return add(relu(any()));
            case 4:
                return add(matmul(any(), any()));
            case 5:
                return add(softmax(any()));
            case 6: {  // makes a view of a view
                const std::int64_t n = shape_[0];
                return add(reshape(reshape(any(), Shape{n * n}), shape_));
            }
            case 7: {
                const Tensor x = any();
                return add(x * x);
            }
            case 8:
                return add(slice(concat<float>({any(), any()}), 0, 0, shape_[0]));
            case 9: {
                const NoGrad off;
                const Tensor y = exp(any_handle() * 0.1f);
                return add(constant(y.value()));
            }
            case 10:
                return add(custom(
                    "halves", [](const Array<float>& x) { return zip(functor::Add{}, x, x); },
                    [](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&,
                       const Array<float>&) { to.add(0, zip(functor::Add{}, dy, dy)); },
                    any()));
            default:
                return add(layer_norm(any(), constant(Array<float>::full({shape_[1]}, 1)),
                                      constant(Array<float>::zeros({shape_[1]}))));
        }
    }
    void grow(std::int64_t operations) {
        for (std::int64_t i = 0; i < operations; ++i) grow();
    }
    Tensor loss() const {
        Tensor total = sum(all_[0]);
        for (std::size_t i = 1; i < all_.size(); ++i) total = std::move(total) + sum(all_[i]);
        return total;
    }
    // Destroys the handles of all results. Call drop_results() only after loss().
    void drop_results() { all_.resize(4); }

private:
    const Tensor& any_handle() {
        return all_[static_cast<std::size_t>(random_.whole(0, std::ssize(all_) - 1))];
    }
    Tensor any() {
        const auto place = static_cast<std::size_t>(random_.whole(0, std::ssize(all_) - 1));
        if (place < 4 || random_.coin()) return all_[place];
        Tensor taken = std::move(all_[place]);
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(place));
        return taken;
    }
    void add(Tensor y) { all_.push_back(std::move(y)); }

    Random& random_;
    Shape shape_;
    std::vector<Tensor> all_;
};

}  // namespace tally::test
