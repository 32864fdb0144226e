// tally across processes: one window over those that mpirun has started, or one model in stages. It needs the library tally_processes,
// which is there with MPI and without; without it there is one process.
#pragma once

#include "tally/processes/pipe.hpp"
#include "tally/processes/processes.hpp"
#include "tally/processes/ranks.hpp"
#include "tally/processes/schedule.hpp"
#include "tally/processes/stages.hpp"
