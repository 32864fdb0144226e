// Declares what exercise later-weights provides.
#pragma once
#include "exercise.hpp"

inline namespace exercise_later_weights {

struct Piece {
    char what;
    int micro;
};
inline Piece F(int micro) { return {'F', micro}; }
inline Piece B(int micro) { return {'B', micro}; }
inline Piece W(int micro) { return {'W', micro}; }

}  // namespace exercise_later_weights

// Returns the work of a stage in order: F, B and W of each micro-batch, each once. Stage 0 is the first of
// `stages`. F(m) waits for F(m) of the previous stage, B(m) for B(m) of the next stage, and W(m) for B(m) of
// its own stage.
std::vector<Piece> schedule(int stage, int stages, int micros);
HAND_IN(schedule);
