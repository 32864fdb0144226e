// tally across processes: one window over those that mpirun has started, or one model in stages. It needs the library tally_distributed,
// which is there with MPI and without; without it there is one process.
#pragma once

#include "tally/distributed/pipe.hpp"
#include "tally/distributed/processes.hpp"
#include "tally/distributed/ranks.hpp"
#include "tally/distributed/stages.hpp"
#include "tally/distributed/timetable.hpp"
