// A `Pipe` runs a model in stages on several processes, which work on different micro-batches at once.
//
//     Pipe<float> pipe(processes, {[&](const Tensor& x, int) { return tanh(layer(x)); }});
//     pipe.run(8, input, loss);   // runs 8 micro-batches forward and backward, and adds their gradients
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tally/autograd/tensor.hpp"
#include "tally/distributed/processes.hpp"
#include "tally/distributed/timetable.hpp"

namespace tally {

namespace detail {
// Options of Pipe.
struct PipeOptions {
    Timetable::Schedule schedule = Timetable::Schedule::one_forward_one_backward;
    Device device = Device::cpu;  // for arrays that this process receives
};

// Result of Pipe::run().
struct PipeResult {
    double loss = 0;                   // sum over all micro-batches in their order, the same on all processes
    std::vector<TimetableStep> steps;  // of this process, as executed; seconds since its run began
    std::vector<int> max_live;  // for each stage of this process, the most micro-batches kept at a time
};
}  // namespace detail

// Each process runs one or more consecutive stages. Rank 0 runs the first stage. A single process runs all
// stages. Each parameter belongs to one stage, and run() adds to its gradient. The gradients have the same
// bits as if one process ran the whole model on one micro-batch after the other.
template <class S> class Pipe {
public:
    using Result = detail::PipeResult;
    using Options = detail::PipeOptions;
    using V = Var<Array<S>>;
    using Stage = std::function<V(const V& x, int micro_batch)>;
    using Input = std::function<Array<S>(int micro_batch)>;
    using LossFunction = std::function<V(const V& y, int micro_batch)>;

    // Distributes `stages` stages evenly, and returns the indices of this process's stages.
    static std::vector<int> own_stages(const ProcessGroup& processes, int stages);

    // `own` contains the stages of this process in the order of the model. All processes must call this
    // constructor. Throws on all processes if a process has no stage, or if schedules or scalar types differ.
    Pipe(ProcessGroup& processes, std::vector<Stage> own, Options options = {});

    // Runs the forward pass and the backward pass of all micro-batches. `micro_batches` must be equal on all
    // processes. The process with the first stage calls `input`, and the process with the last stage calls
    // `loss`. If one process fails, all processes throw, and the gradients are incomplete.
    Result run(int micro_batches, const Input& input, const LossFunction& loss);

    int stages() const { return stages_; }  // on all processes together

private:
    ProcessGroup& processes_;
    std::vector<Stage> own_;
    Options options_;
    int first_stage_ = 0, stages_ = 0;
    std::int64_t pipe_id_, run_count_ = 0;
};

extern template class Pipe<float>;
extern template class Pipe<double>;

}  // namespace tally
