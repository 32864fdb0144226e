// The timetable of a pipe: which stage works on which micro-batch when, how many it keeps, and how long it
// waits. Calculated alone; pipe.hpp runs it.
#pragma once

#include <string>
#include <vector>

namespace tally {

// In which order the stages of a pipe work.
enum class PipeSchedule {
    gpipe,                     // all forwards, then all backwards
    one_forward_one_backward,  // a backward as soon as there is one: 1F1B
};
std::string to_string(PipeSchedule schedule);  // "GPipe", "1F1B"

// One thing that a stage does.
struct PipeStep {
    char what;  // F forward, B backward (to the inputs alone where there is a W), W the weights' gradients
    int micro, stage;
    double begin = 0, end = 0;
};

namespace detail {
// Seconds of a stage for one micro-batch: forward, gradients of its inputs, gradients of its weights.
struct StageSeconds {
    double forward = 1, inputs = 1, weights = 1;
};
}  // namespace detail

// What each stage does when.
struct Timetable {
    std::vector<std::vector<PipeStep>> stages;
    double seconds = 0;
    std::vector<int> live;  // of each stage: micro-batches whose inputs it kept at most at a time

    double bubble() const;                   // the share of the stages' time in which they wait
    std::string drawing(double unit) const;  // a lane for each stage, a column for each unit of time
};

// Each step begins as soon as the stage is free and what it reads is there; sending takes no time.
Timetable timetable(PipeSchedule schedule, const std::vector<detail::StageSeconds>& stages,
                    int micro_batches);
Timetable timetable(PipeSchedule schedule, int stages, int micro_batches,
                    const detail::StageSeconds& seconds = {});

namespace detail {
// 1F1B with the gradients of weights later, when a stage would wait: ZB-H1 (arXiv 2401.10241). No Pipe runs it.
Timetable zero_bubble(const std::vector<StageSeconds>& stages, int micro_batches);
Timetable zero_bubble(int stages, int micro_batches);
}  // namespace detail

}  // namespace tally
