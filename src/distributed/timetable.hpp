// Timetable::of() computes when each stage of a pipe works on which micro-batch, without running the pipe.
#pragma once

#include <string>
#include <vector>

namespace tally {

namespace detail {
// Describes a step of a stage. 'B' computes all gradients, or only the inputs' gradients if 'W' steps exist.
struct TimetableStep {
    char what;  // 'F' forward, 'B' backward, 'W' gradients of the weights
    int micro, stage;
    double begin = 0, end = 0;
};

// Holds how long a stage takes for forward step, inputs' gradients and weights' gradients of a micro-batch.
struct StageSeconds {
    double forward = 1, inputs = 1, weights = 1;
};
}  // namespace detail

// A Timetable holds the steps of all stages with the times of the steps.
struct Timetable {
    using Step = detail::TimetableStep;
    // Schedule is the order in which the stages of a pipe work.
    enum class Schedule {
        gpipe,                     // first the forward steps of all micro-batches, then all backward steps
        one_forward_one_backward,  // 1F1B: some forward steps, then alternately backward and forward
    };

    // Computes a timetable in which each step begins as soon as its stage is free and its input is available.
    // Assumes that sending takes no time.
    static Timetable of(Schedule schedule, const std::vector<detail::StageSeconds>& stages,
                        int micro_batches);
    static Timetable of(Schedule schedule, int stages, int micro_batches,
                        const detail::StageSeconds& seconds = {});

    std::vector<std::vector<Step>> stages;
    double seconds = 0;
    std::vector<int> max_live;  // for each stage, the most micro-batches whose inputs it keeps at a time

    double bubble() const;                   // the fraction of the stages' time that is spent waiting
    std::string drawing(double unit) const;  // a line for each stage, a column for each unit of time
};

std::string to_string(Timetable::Schedule schedule);  // "GPipe", "1F1B"

namespace detail {
// Computes the timetable of ZB-H1 (arXiv 2401.10241): 1F1B in which stage s computes the weights' gradients
// s micro-batches late, to fill waiting time. Pipe does not run ZB-H1.
Timetable zero_bubble(const std::vector<StageSeconds>& stages, int micro_batches);
Timetable zero_bubble(int stages, int micro_batches);
}  // namespace detail

}  // namespace tally
