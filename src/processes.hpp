// tally across processes: one window over those that mpirun has started. It needs the library tally_processes,
// which is there with MPI and without; without it there is one process.
#pragma once

#include "tally/processes/processes.hpp"
#include "tally/processes/ranks.hpp"
