// Pipe: a model in stages, one after the other, over processes. A window in space: while one stage works on a
// micro-batch, the others work on those before and behind it.
//
//     Pipe<float> pipe(processes, {[&](const Tensor& x, int) { return tanh(layer(x)); }});
//     pipe.run(8, input, loss);   // 8 micro-batches forward and backward: the gradients are there
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tally/autograd/tensor.hpp"
#include "tally/distributed/processes.hpp"
#include "tally/distributed/schedule.hpp"

namespace tally {

// Of Pipe.
struct PipeOptions {
    PipeSchedule schedule = PipeSchedule::one_forward_one_backward;
    Device device = Device::cpu;  // where this process puts what comes from another
};

// What a run was.
struct PipelineResult {
    double loss = 0;              // of all micro-batches, added in their order; the same on each process
    std::vector<PipeStep> steps;  // of this process, as it did them; in seconds since its run began
    std::vector<int> live;        // of each of its stages: micro-batches that it kept at most at a time
};

// The numbers, from 0, of this process's neighbours among so many stages.
std::vector<int> own_stages(const ProcessGroup& processes, int stages);

// Each process has one stage or some neighbours, rank 0 the first; alone it has them all. Backward adds to the
// gradients of the stages' parameters, each of which belongs to one stage, one micro-batch after the other:
// bit for bit what one process adds that runs one micro-batch after the other through the whole model.
template <class S> class Pipe {
public:
    using V = Var<Array<S>>;
    using Stage = std::function<V(const V& x, int micro_batch)>;
    using Input = std::function<Array<S>(int micro_batch)>;
    using LossOf = std::function<V(const V& y, int micro_batch)>;

    // This process's stages, in their order. All come here together: an Error on each of them where one has no
    // stage, another schedule or another type.
    Pipe(ProcessGroup& processes, std::vector<Stage> own, PipeOptions options = {});

    // All micro-batches forward and backward; everybody calls it with the same number. The first stage's
    // process asks for inputs, the last one's for losses. What fails on one process is an Error on all, after
    // which the gradients are those of some micro-batches.
    PipelineResult run(int micro_batches, const Input& input, const LossOf& loss);

    int stages() const { return stages_; }  // of all processes

private:
    ProcessGroup& processes_;
    std::vector<Stage> own_;
    PipeOptions options_;
    int first_ = 0, stages_ = 0;
    std::int64_t number_, runs_ = 0;
};

extern template class Pipe<float>;
extern template class Pipe<double>;

}  // namespace tally
