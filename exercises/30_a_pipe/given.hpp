// Declares what exercise a-pipe provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_a_pipe {

struct Work {
    bool backward;
    int micro;
};
inline Work F(int micro) { return {false, micro}; }
inline Work B(int micro) { return {true, micro}; }

}  // namespace exercise_a_pipe

// Returns the work of a stage in order: F and B of each micro-batch, each once. Stage 0 is the first of `stages`.
// F(m) waits for F(m) of the previous stage, B(m) for B(m) of the next stage; each takes one unit of time.
std::vector<Work> schedule(int stage, int stages, int micros);
HAND_IN(schedule);
