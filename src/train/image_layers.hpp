// Defines layers of convolutional networks with PyTorch's names, formulas and initial distributions.
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tally/base/text.hpp"
#include "tally/train/layers.hpp"

namespace tally {

namespace detail {
// Options of Conv2d.
struct Conv2dOptions {
    std::int64_t stride = 1, padding = 0;
    bool bias = true;
};
}  // namespace detail

// The layer `Conv2d` convolves x (items, in, height, width) with kernels of shape (size, size). The weight
// and the bias are initially uniform between -r and r with r = 1/sqrt(in * size * size).
template <class S> class Conv2d : public Layer<S> {
public:
    using Options = detail::Conv2dOptions;

    Conv2d(std::int64_t in, std::int64_t out, std::int64_t size, detail::RngStream stream,
           Options options = {})
        : options_(options) {
        const auto seen = static_cast<double>(in * size * size);
        const double bound = seen > 0 ? 1 / std::sqrt(seen) : 0;
        weight = detail::uniform_parameter<S>({out, in, size, size}, bound, stream);
        if (options.bias) bias = detail::uniform_parameter<S>({out}, bound, stream, weight.value().size());
    }
    void list(typename Module<S>::Members& members) override {
        members.parameter("weight", weight);
        members.parameter("bias", bias);
    }

    Var<Array<S>> weight, bias;

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override {
        return bias ? conv2d(std::move(x), weight, bias, options_.stride, options_.padding)
                    : conv2d(std::move(x), weight, options_.stride, options_.padding);
    }

private:
    Options options_;
};

// The layer `MaxPool2d` returns the maximum of each (size, size) block. The default stride is `size`.
template <class S> class MaxPool2d : public Layer<S> {
public:
    explicit MaxPool2d(std::int64_t size, std::int64_t stride = 0) : size_(size), stride_(stride) {}
    void list(typename Module<S>::Members&) override {}

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass&) override {
        return max_pool2d(std::move(x), size_, stride_);
    }

private:
    std::int64_t size_, stride_;
};

// The layer `BatchNorm` normalises x (items, features) or (items, features, height, width). In training each
// micro-batch is normalised by its own statistics, so the result depends on the sizes of the micro-batches.
// Window::finish() combines the statistics of all micro-batches and updates the running statistics.
template <class S> class BatchNorm : public Layer<S> {
public:
    explicit BatchNorm(std::int64_t features, double eps = 1e-5, double momentum = 0.1)
        : weight(parameter(Array<S>::full({features}, S(1)))),
          bias(parameter(Array<S>::zeros({features}))),
          running(features),
          eps_(eps),
          momentum_(momentum) {
        if (!(eps >= 0 && eps < INFINITY))
            throw Error("[batch_norm] eps must be finite and at least 0; it is " + detail::to_text(eps));
        if (!(momentum >= 0 && momentum <= 1))
            throw Error("[batch_norm] the momentum must be between 0 and 1; it is " +
                        detail::to_text(momentum));
    }
    void list(typename Module<S>::Members& members) override {
        members.parameter("weight", weight);
        members.parameter("bias", bias);
        members.buffer("running_mean", running.mean);
        members.buffer("running_var", running.variance);
        members.counter("num_batches_tracked", updates);
    }
    std::unique_ptr<detail::SideEffect> saved_effect(const TrainingState& state,
                                                     const std::string& prefix) override {
        if (!state.has(prefix + "count")) return nullptr;
        detail::BatchStatistics<S> seen{state.get<Array<S>>(prefix + "mean").to(running.mean.device()),
                                        state.get<Array<S>>(prefix + "variance").to(running.mean.device()),
                                        state.get<double>(prefix + "count")};
        if (!(seen.count > 0 && seen.count <= 0x1p53))
            throw Error("[batch_norm] '" + prefix + "count' must be 1 to 2^53, not " +
                        detail::to_text(seen.count));
        if (seen.mean.shape() != running.mean.shape() || seen.variance.shape() != running.mean.shape())
            throw Error("[batch_norm] '" + prefix + "' was saved with a different number of features than " +
                        to_string(running.mean.shape()));
        return std::make_unique<Seen>(*this, std::move(seen));
    }

    // Adds the statistics of a batch to `pass`, so that Window::finish() can update the running statistics.
    void leave(ForwardPass& pass, detail::BatchStatistics<S> batch) {
        by_hand_ = by_hand_ || !pass.items;
        pass.effects.add(this, std::make_unique<Seen>(*this, std::move(batch)));
    }
    double eps() const { return eps_; }

    Var<Array<S>> weight, bias;
    RunningStatistics<S> running;
    Array<std::int32_t> updates = Array<std::int32_t>::zeros({});

protected:
    Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) override {
        if (!detail::trains("batch norm", pass)) {
            require_committed();
            return batch_norm(std::move(x), weight, bias, running, eps_);
        }
        detail::BatchNormResult<S> normed = batch_norm(std::move(x), weight, bias, eps_);
        if (normed.statistics.count > 0) leave(pass, std::move(normed.statistics));
        return std::move(normed.y);
    }

private:
    struct Seen : detail::SideEffect {
        Seen(BatchNorm& of, detail::BatchStatistics<S> batch) : place(of.place()), seen(std::move(batch)) {}
        BatchNorm* layer() const { return static_cast<BatchNorm*>(*place); }  // null if destroyed
        void join(const detail::SideEffect& later) override {
            seen = seen.pooled_with(static_cast<const Seen&>(later).seen);
        }
        void prepare() override {
            if (next || !layer()) return;
            RunningStatistics<S> moved = layer()->running;
            moved.commit(seen, layer()->momentum_);
            layer()->updates.writable();
            next = std::move(moved);
        }
        void commit() override {
            if (!next || !layer()) return;
            layer()->running = *std::exchange(next, {});
            ++*layer()->updates.writable();
        }
        void save(TrainingState& state, const std::string& prefix) const override {
            state.put(prefix + "mean", seen.mean);
            state.put(prefix + "variance", seen.variance);
            state.put(prefix + "count", seen.count);
        }
        std::shared_ptr<Module<S>*> place;
        detail::BatchStatistics<S> seen;
        std::optional<RunningStatistics<S>> next;
    };

    void require_committed() const {
        if (by_hand_ && updates.item() == 0)
            throw Error(
                "[batch_norm] the layer trained in a ForwardPass that you made, but its running statistics "
                "were "
                "never updated; call pass.effects.commit() after each update");
    }

    double eps_, momentum_;
    bool by_hand_ = false;  // the layer has trained in a ForwardPass that no Window made
};

extern template class Conv2d<float>;
extern template class Conv2d<double>;
extern template class MaxPool2d<float>;
extern template class MaxPool2d<double>;
extern template class BatchNorm<float>;
extern template class BatchNorm<double>;

}  // namespace tally
