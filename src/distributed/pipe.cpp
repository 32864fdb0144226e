// Pipe runs the steps of a timetable, passes arrays from stage to stage, and recovers after an error.
#include "tally/distributed/pipe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tally/base/error.hpp"
#include "tally/distributed/entry_format.hpp"
#include "tally/train/gradient_reducer.hpp"

namespace tally {

namespace {

using detail::bytes_of, detail::from_bytes;

std::string to_text(const Timetable::Step& step) {
    return std::string(step.what == 'F' ? "forward" : "backward") + " of micro-batch " +
           std::to_string(step.micro) + " in stage " + std::to_string(step.stage);
}

std::string encode_shape(const Shape& shape) {
    return {reinterpret_cast<const char*>(shape.begin()), reinterpret_cast<const char*>(shape.end())};
}

Shape decode_shape(const std::string& label) {
    std::vector<std::int32_t> extents(label.size() / sizeof(std::int32_t));
    std::memcpy(extents.data(), label.data(), label.size());
    return Shape(std::vector<std::int64_t>(extents.begin(), extents.end()));
}

// Returns the steps of a process's stages in the order of their times in the timetable. Each step waits only
// for earlier steps, so the processes cannot deadlock.
std::vector<Timetable::Step> by_time(const Timetable& table, int first, std::size_t own) {
    std::vector<Timetable::Step> steps;
    for (std::size_t i = 0; i < own; ++i) {
        const auto& stage = table.stages[static_cast<std::size_t>(first) + i];
        steps.insert(steps.end(), stage.begin(), stage.end());
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return steps;
}

// A Run executes one call of Pipe::run() on this process.
template <class S> class Run {
public:
    using Stage = typename Pipe<S>::Stage;
    using Input = typename Pipe<S>::Input;
    using LossFunction = typename Pipe<S>::LossFunction;

    Run(ProcessGroup& processes, const std::vector<Stage>& own, int first, int stages, Device device,
        std::string call)
        : processes_(processes),
          own_(own),
          first_stage_(first),
          last_index_(stages - 1 - first),
          device_(device),
          call_(std::move(call)),
          pending_(own.size()),
          activations_(own.size()),
          gradients_(own.size()) {
        result_.max_live.resize(own.size());
    }

    detail::PipeResult execute(const std::vector<Timetable::Step>& steps, const Input& input,
                               const LossFunction& loss) {
        using Clock = std::chrono::steady_clock;
        const auto begun = Clock::now();
        const auto now = [&] { return std::chrono::duration<double>(Clock::now() - begun).count(); };
        try {
            for (Timetable::Step step : steps) {
                where_ = to_text(step);
                step.begin = now();
                const auto i = static_cast<std::size_t>(step.stage - first_stage_);
                step.what == 'F' ? forward(i, step.micro, input, loss) : backward(i, step.micro);
                step.end = now();
                result_.steps.push_back(step);
            }
            where_ = "the end";
            const auto all = processes_.all_gather(call_, where_, bytes_of(result_.loss));
            result_.loss = from_bytes<double>(all.back());  // the loss of the last stage
            await_sent();
        } catch (const detail::SharedError&) {
            drain();
            throw;
        } catch (const std::exception& error) {
            processes_.report_failure(call_ + ", " + where_, error.what());
            drain();
            throw;
        }
        return std::move(result_);
    }

private:
    struct Activations {
        Var<Array<S>> x, y;
    };
    using Queue = std::deque<Array<S>>;
    enum Side : std::size_t { previous = 0, next = 1 };  // the neighbours of this process
    using Counts = std::array<int, 2>;                   // one for each neighbour

    void forward(std::size_t i, int k, const Input& input, const LossFunction& loss) {
        Activations kept;
        if (is_first(i))
            kept.x = constant(input(k));
        else
            kept.x = Var<Array<S>>(i > 0 ? pop(activations_[i]) : receive(previous), detail::State::leaf);
        kept.y = own_[i](kept.x, k);
        if (is_last(i)) {
            kept.y = loss(kept.y, k);
            result_.loss += static_cast<double>(kept.y.item());
        } else if (i + 1 < own_.size()) {
            activations_[i + 1].push_back(kept.y.value());
        } else {
            send(next, kept.y.value());
        }
        pending_[i].emplace(k, std::move(kept));
        result_.max_live[i] = std::max(result_.max_live[i], static_cast<int>(pending_[i].size()));
    }

    void backward(std::size_t i, int k) {
        Activations kept = std::move(pending_[i].extract(k).mapped());
        if (is_last(i)) {
            kept.y.backward();
        } else {
            const Array<S> gradient = i + 1 < own_.size() ? pop(gradients_[i]) : receive(next);
            if (kept.y.requires_grad()) kept.y.backward(gradient);
        }
        kept.y = {};
        if (is_first(i)) return;
        if (!kept.x.has_grad())
            throw Error("pipe", "stage ", first_stage_ + static_cast<int>(i), ", micro-batch ", k,
                        ": no gradient has reached the input; return a value that depends on the input");
        if (i > 0)
            gradients_[i - 1].push_back(kept.x.grad());
        else
            send(previous, kept.x.grad());
    }

    bool is_first(std::size_t i) const { return first_stage_ == 0 && i == 0; }
    bool is_last(std::size_t i) const { return static_cast<int>(i) == last_index_; }

    static Array<S> pop(Queue& queue) {
        Array<S> first = std::move(queue.front());
        queue.pop_front();
        return first;
    }

    // ---- communication with the neighbours ----

    int rank(Side side) const { return processes_.rank() + (side == previous ? -1 : 1); }

    void send(Side side, const Array<S>& array) {
        const auto copy = std::make_shared<const Array<S>>(array.to(Device::cpu));
        processes_.post(encode_shape(copy->shape()),
                        {rank(side), const_cast<S*>(copy->data()), copy->size() * sizeof(S)}, copy);
        ++posted_[side];
        processes_.transport().free_sent();
    }
    bool all_sent() { return processes_.transport().free_sent() == 0; }
    Array<S> receive(Side side) {
        Array<S> array = Array<S>::empty(next_shape(side));
        S* const at = array.raw();
        return take(side, std::move(array), at).to(device_);
    }
    // Returns the shape of the next array from a neighbour, and stores the array's label.
    Shape next_shape(Side side) {
        auto& label = labels_[side];
        if (!label)
            processes_.wait_or_fail(call_, where_, "nothing arrived from rank " + std::to_string(rank(side)),
                                    [&] {
                                        processes_.transport().free_sent();
                                        label = processes_.transport().poll_label(rank(side));
                                        return label.has_value();
                                    });
        return decode_shape(*label);
    }
    template <class Memory> Memory take(Side side, Memory memory, S* at) {
        auto held = std::make_unique<Memory>(std::move(memory));
        try {
            processes_.take(call_, {rank(side), at, next_shape(side).size() * sizeof(S)});
        } catch (...) {
            (void)held.release();  // MPI may still write to the memory
            throw;
        }
        labels_[side].reset();
        ++taken_[side];
        return std::move(*held);
    }

    void await_sent() {
        processes_.wait_or_fail(call_, where_, "a sent array was not received", [&] { return all_sent(); });
    }

    // After an error on any process, receives and discards the arrays that were already sent, so that the
    // next run does not receive these arrays.
    void drain() noexcept {
        try {
            const auto all = processes_.all_gather("the sent arrays of " + call_, "", bytes_of(posted_));
            for (const Side side : {previous, next}) {
                if (rank(side) < 0 || rank(side) >= processes_.size()) continue;
                const int posted = from_bytes<Counts>(all[static_cast<std::size_t>(rank(side))])[1 - side];
                while (taken_[side] < posted) {
                    std::vector<S> numbers(next_shape(side).size());  // an Array may throw OutOfMemory
                    S* const at = numbers.data();
                    take(side, std::move(numbers), at);
                }
            }
            await_sent();
        } catch (...) {  // the communication has ended, and the next call throws
        }
    }

    ProcessGroup& processes_;
    const std::vector<Stage>& own_;
    const int first_stage_;  // index of this process's first stage
    const int last_index_;   // index in own_ of the pipe's last stage; too large if another process has it
    const Device device_;
    const std::string call_;
    std::string where_;
    detail::PipeResult result_;
    std::vector<std::map<int, Activations>> pending_;  // for each stage, by micro-batch
    std::vector<Queue> activations_;  // for each stage, from the previous stage if this process has it
    std::vector<Queue> gradients_;    // for each stage, from the next stage if this process has it
    Counts posted_{}, taken_{};       // arrays that this process has sent and received
    std::array<std::optional<std::string>, 2> labels_;  // of arrays that were announced and not received yet
};

}  // namespace

template <class S> std::vector<int> Pipe<S>::own_stages(const ProcessGroup& processes, int stages) {
    std::vector<int> own;
    for (int stage = processes.rank() * stages / processes.size();
         stage < (processes.rank() + 1) * stages / processes.size(); ++stage)
        own.push_back(stage);
    return own;
}

template <class S> Pipe<S>::Pipe(ProcessGroup& processes, std::vector<Stage> own, detail::PipeOptions options)
    : processes_(processes), own_(std::move(own)), options_(options) {
    const std::vector<std::string> all = processes_.all_gather(
        "the construction of a Pipe<" + std::string(sizeof(S) == 4 ? "float" : "double") +
            "> with the schedule " + to_string(options_.schedule),
        std::to_string(own_.size()));
    pipe_id_ = processes_.next_pipe_index();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        detail::require(all[rank] != "0", "pipe", "rank ", rank, " has no stage; give each of ", all.size(),
                        " processes at least one");
        if (rank < static_cast<std::size_t>(processes_.rank())) first_stage_ += std::stoi(all[rank]);
        stages_ += std::stoi(all[rank]);
    }
}

template <class S>
detail::PipeResult Pipe<S>::run(int micro_batches, const Input& input, const LossFunction& loss) {
    const std::string call = "run " + std::to_string(run_count_) + " of the pipe, of " +
                             std::to_string(micro_batches) + " micro-batches";
    const std::vector<std::string> numbers = processes_.all_gather(call, std::to_string(pipe_id_));
    for (std::size_t rank = 1; rank < numbers.size(); ++rank)
        if (numbers[rank] != numbers[0])
            throw Error("pipe", call, ": rank 0 runs pipe ", numbers[0], ", and rank ", rank, " runs pipe ",
                        numbers[rank],
                        " (in order of construction, from 0); run the same pipe on all processes");
    ++run_count_;
    detail::pipe_processes = processes_.size();  // windows then reject options that need all stages
    Run<S> run(processes_, own_, first_stage_, stages_, options_.device, call);
    return run.execute(
        by_time(Timetable::of(options_.schedule, stages_, micro_batches), first_stage_, own_.size()), input,
        loss);
}

template class Pipe<float>;
template class Pipe<double>;

}  // namespace tally
