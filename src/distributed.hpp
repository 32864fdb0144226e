// tally across processes: one window over those that mpirun has started, or one model in stages. It needs the library tally_distributed,
// which is there with MPI and without; without it there is one process.
#pragma once

#include "tally/distributed/data_parallel.hpp"
#include "tally/distributed/pipe.hpp"
#include "tally/distributed/pipeline_parallel.hpp"
#include "tally/distributed/processes.hpp"
#include "tally/distributed/timetable.hpp"
