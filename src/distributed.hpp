// Includes the headers for training in several processes, with data parallelism or pipeline stages. Link the
// library tally_distributed. If tally was built without MPI, there is one process.
#pragma once

#include "tally/distributed/data_parallel.hpp"
#include "tally/distributed/pipe.hpp"
#include "tally/distributed/pipeline_parallel.hpp"
#include "tally/distributed/processes.hpp"
#include "tally/distributed/timetable.hpp"
