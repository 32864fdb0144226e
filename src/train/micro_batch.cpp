// Implements MicroBatchSize: repeats a window with smaller micro-batches, and reports a lack of memory.
#include "tally/train/micro_batch.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tally/base/text.hpp"
#include "tally/memory/memory.hpp"

namespace tally {
namespace {

// Records how much memory parameters, gradients and optimizer occupy before fill() is called.
template <class S> class MemorySnapshot {
public:
    explicit MemorySnapshot(const Window<S>& window)
        : window_(window),
          in_use_(memory::in_use(device())),
          optimizer_bytes_(window.optimizer().state_size().now) {
        for (const Var<Array<S>>& parameter : parameters())
            had_gradient_.push_back(detail::has_memory(gradient(parameter)));
    }

    // Returns the error message. Call to_text() before restore(), because the text counts new gradients.
    std::string to_text(const OutOfMemory& failure, bool filled) const {
        std::size_t values = 0, gradients_before = 0, gradients_made = 0;
        for (std::size_t i = 0; i < had_gradient_.size(); ++i) {
            const std::size_t bytes = parameters()[i].value().size() * sizeof(S);
            values += bytes;
            if (had_gradient_[i])
                gradients_before += bytes;
            else if (detail::has_memory(gradient(parameters()[i])))
                gradients_made += bytes;
        }
        const std::size_t optimizer = window_.optimizer().state_size().whole,
                          known = values + gradients_before + optimizer_bytes_,
                          others = in_use_ - std::min(in_use_, known),
                          beyond = failure.in_use + failure.asked -
                                   std::min(failure.in_use, in_use_ + gradients_made);
        const std::size_t budget = memory::detail::budget(failure.device);
        return "[micro_batch] not even one item at a time fits. Fixed, whatever the size: " +
               detail::format_bytes(2 * values + optimizer) + " (parameters " + detail::format_bytes(values) +
               ", gradients " + detail::format_bytes(values) + ", optimizer " +
               detail::format_bytes(optimizer) + "), and " + detail::format_bytes(others) +
               " in use elsewhere. " +
               (filled ? "One item fits, but then the update asked for " : "One item takes ") +
               detail::format_bytes(beyond) + (filled ? " more. " : " or more. ") +
               (budget > 0 ? "The budget is " + detail::format_bytes(budget) : "No budget is set") +
               "; use checkpoints or a smaller model" + (budget > 0 ? ", or raise the budget" : "");
    }

    void restore() const {
        for (std::size_t i = 0; i < had_gradient_.size(); ++i)
            if (!had_gradient_[i]) parameters()[i].free_grad();
    }

private:
    static const Array<S>& gradient(const Var<Array<S>>& parameter) { return parameter.node()->gradient; }
    const std::vector<Var<Array<S>>>& parameters() const { return window_.optimizer().parameters(); }
    Device device() const { return parameters()[0].value().device(); }

    const Window<S>& window_;
    std::size_t in_use_, optimizer_bytes_;
    std::vector<bool> had_gradient_;  // whether the gradient of each parameter had memory
};

}  // namespace

MicroBatchSize::MicroBatchSize(std::int64_t begin, std::int64_t retries) : size_(begin), retries_(retries) {
    if (begin < 1)
        throw Error("[micro_batch] a micro-batch holds at least one item; " + std::to_string(begin) +
                    " are asked for");
}

template <class S>
detail::WindowResult<S> MicroBatchSize::update(Window<S>& window, std::int64_t items,
                                               const std::function<void(std::int64_t)>& fill) {
    if (!window.empty())
        throw Error(
            "[micro_batch] the window is not empty, and its micro-batches could not be repeated; "
            "call finish() or discard() first");
    if (window.planned_micro_batches() > 0)
        throw Error(
            "[micro_batch] the window is planned for " + std::to_string(window.planned_micro_batches()) +
            " micro-batches, but their number depends on the memory; call plan_micro_batches(0) first");
    for (;;) {
        const MemorySnapshot<S> before(window);
        bool filled = false;
        std::optional<OutOfMemory> failure;
        try {
            fill(size_);
            filled = true;
            return window.micro_batches() > 0 ? window.flush() : window.finish();
        } catch (const OutOfMemory& error) {
            failure = error;
        } catch (...) {
            window.discard();
            before.restore();
            throw;
        }
        const std::int64_t tried = std::min(size_, std::max<std::int64_t>(items, 1));
        const std::string words = tried == 1 ? before.to_text(*failure, filled) : "";
        window.discard();
        before.restore();
        memory::drop_cache(failure->device);
        if (tried == 1) throw OutOfMemory(words, failure->device, failure->asked, failure->in_use);
        size_ = tried / 2;
        ++retries_;
    }
}

template detail::WindowResult<float> MicroBatchSize::update(Window<float>&, std::int64_t,
                                                            const std::function<void(std::int64_t)>&);
template detail::WindowResult<double> MicroBatchSize::update(Window<double>&, std::int64_t,
                                                             const std::function<void(std::int64_t)>&);

}  // namespace tally
