// A window that the device repeats by itself: captured once as a graph, then replayed with a single launch.
//
//     CapturedWindow<float> update(window, [=, &model](Window<float>& w) {  // x, labels are on the device
//         for (const auto& [from, to] : parts)
//             w.add(cross_entropy(model(x.leading(from, to), w.pass(to - from)), labels.leading(from, to)));
//     });
//     for (const Batch& batch : batches) {
//         refill(x, batch.x);
//         refill(labels, batch.labels);
//         Finished<float> done = update.replay();
//     }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tally/train/window.hpp"

namespace tally {

namespace memory {
class Reserve;
}
namespace peer {
struct Graph;
}

// Other numbers in the place of those before, for every handle: inputs of a captured window are looked for
// where they were.
template <class T> void refill(const Array<T>& place, const Array<T>& numbers);

// Each replay() is one update, with the bits that window.finish() would give. The first ones are that:
// windows like any other, until one of them has found all the memory that it wanted; the next one is
// captured. What the host decides anew for each (learning rate, Adam's t, the seed of dropout) the device
// looks up; what follows from the gradients (whether they are numbers, the clip's factor) it decides itself,
// and the host waits once to hear of it. Where a buffer has moved, because somebody holds a copy or a state
// was loaded, it begins again. On the CPU nothing is captured: the function runs every time.
template <class S> class CapturedWindow {
public:
    // The function adds the micro-batches of one window, always the same ones, and holds its inputs by value.
    // Numbers of the host that it uses are those of the capture, for ever. All that it reads and the
    // optimizer does not step (inputs, frozen weights, buffers) must live and stay where it was: only
    // refill() changes it, and nobody looks whether it has moved.
    using Work = std::function<void(Window<S>&)>;

    CapturedWindow(Window<S>& window, Work work);
    CapturedWindow(const CapturedWindow&) = delete;
    CapturedWindow& operator=(const CapturedWindow&) = delete;
    ~CapturedWindow();

    Finished<S> replay();  // where it throws, nothing was updated, and the next one begins anew
    bool captured() const { return graph_ != nullptr; }

private:
    using Places = std::vector<const void*>;

    Finished<S> ordinary();
    void expect_capturable() const;
    Finished<S> run();
    void capture();
    void hand_over();
    Finished<S> launch();
    void judge(const detail::Decisions<S>& found, Finished<S>& done);
    detail::Conditions<S> conditions() const;
    Places places();
    void forget();

    Window<S>& window_;
    Work work_;
    std::unique_ptr<memory::Reserve> reserve_;  // outlives the graph, which holds its addresses
    bool settled_ = false;                      // the last window took no memory that was not there
    peer::Graph* graph_ = nullptr;
    Array<double> decisions_;  // the device's Decisions<S>
    typename Optimizer<S>::Capture step_{};
    std::int64_t micro_batches_ = 0;
    Places places_;  // of all that the graph writes to and others may move
};

extern template class CapturedWindow<float>;
extern template class CapturedWindow<double>;

}  // namespace tally
