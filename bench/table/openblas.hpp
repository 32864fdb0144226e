// OpenBLAS at its best: the core type whose kernels are the fastest here, of all that it accepts.
#pragma once

#include <string>

namespace tally::bench {

// OpenBLAS reads OPENBLAS_CORETYPE when it is loaded, and never again: each core type is measured in a process of its
// own, in turn, and then this program begins again with the best one. Left alone where the variable is set.
void begin_again_at_the_best(char** argv);
constexpr const char* measure_word = "--measure-openblas";  // what such a process is told
int answer_measurements();                                  // and does

std::string openblas_kernels();  // which are in use, and how that came

}  // namespace tally::bench
