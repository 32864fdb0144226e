// Selects the core type of OpenBLAS whose kernels are the fastest on this machine.
#pragma once

#include <string>

namespace tally::bench {

// Measures each core type in its own process, because OpenBLAS reads OPENBLAS_CORETYPE only when OpenBLAS is
// loaded. Then restarts this program with the fastest core type. Does nothing if OPENBLAS_CORETYPE is set.
void restart_with_best_core_type(char** argv);
constexpr const char* measure_argument = "--measure-openblas";  // argument of the measuring processes
int answer_measurements();                                      // main() of the measuring processes

std::string openblas_kernels();  // names the kernels in use and the reason for the choice

}  // namespace tally::bench
