// Exercise 25, later weights: what is given.
#pragma once
#include "exercise.hpp"

inline namespace exercise_25 {

struct Piece {
    char what;
    int micro;
};
inline Piece F(int micro) { return {'F', micro}; }
inline Piece B(int micro) { return {'B', micro}; }
inline Piece W(int micro) { return {'W', micro}; }

}  // namespace exercise_25

// What a stage does, in this order: F, B and W of each micro-batch once. Stage 0 is the first one of `stages`. F(m) of a
// stage waits for F(m) of the stage before it, B(m) for B(m) of the stage behind it, W(m) for B(m) of its own stage.
std::vector<Piece> schedule(int stage, int stages, int micros);
HAND_IN(schedule);
