// Schedules of a pipeline: which stage works on which micro-batch when, and how many wait in it.
#pragma once

#include <string>
#include <vector>

namespace tally::scaling {

enum class Schedule {
    gpipe,                     // all forwards, then all backwards
    one_forward_one_backward,  // a backward as soon as there is one: 1F1B
    zero_bubble  // and the gradients of weights later, when a stage would wait: ZB-H1 (arXiv 2401.10241)
};

struct Work {
    char what;  // F forward, B backward (to the inputs alone under zero_bubble), W the weights' gradients
    int micro;
    double begin = 0, end = 0;
};

struct Piped {
    std::vector<std::vector<Work>> stages;
    double seconds = 0;
    std::vector<int> live;  // of each stage: micro-batches whose inputs it kept at most at a time

    double bubble() const;                   // the share of the stages' time in which they wait
    std::string drawing(double unit) const;  // a lane for each stage, a column for each unit of time
};

// Seconds of a stage for one micro-batch: forward, gradients of its inputs, gradients of its weights.
struct StageSeconds {
    double forward = 1, inputs = 1, weights = 1;
};
// What a stage does, one after the other.
std::vector<Work> order_of(Schedule schedule, int stage, int stages, int micro_batches);

Piped pipe(Schedule schedule, int stages, int micro_batches, const StageSeconds& seconds = {});

}  // namespace tally::scaling
