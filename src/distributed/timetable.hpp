// Timetable::of() computes when each stage works on each micro-batch, without running the model.
#pragma once

#include <string>
#include <vector>

namespace tally {

namespace detail {
// A step 'B' computes all gradients, or only the gradients of the inputs if steps 'W' exist.
struct TimetableStep {
    char what;  // 'F' forward, 'B' backward, 'W' gradients of the weights
    int micro, stage;
    double begin = 0, end = 0;
};

// The time of a stage for the forward step, the input gradients and the weight gradients of a micro-batch.
struct StageSeconds {
    double forward = 1, inputs = 1, weights = 1;
};
}  // namespace detail

// A `Timetable` lists the steps of all stages and the times of these steps.
struct Timetable {
    using Step = detail::TimetableStep;
    // A `Schedule` selects the order of the forward and backward steps.
    enum class Schedule {
        gpipe,                     // first the forward steps of all micro-batches, then all backward steps
        one_forward_one_backward,  // 1F1B: some forward steps, then alternately backward and forward
    };

    // Each step begins as soon as its stage is free and its input is available. Assumes that sending arrays
    // between stages takes no time.
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
// Computes the timetable of ZB-H1 (arXiv 2401.10241): 1F1B in which stage s defers the weight gradients of s
// micro-batches to fill its waiting time. The class `Pipe` does not run ZB-H1.
Timetable zero_bubble(const std::vector<StageSeconds>& stages, int micro_batches);
Timetable zero_bubble(int stages, int micro_batches);
}  // namespace detail

}  // namespace tally
