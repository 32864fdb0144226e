// Defines world(), the ProcessGroup of all processes, and the device of the tests.
#include "distributed/world.hpp"

#if TALLY_HAS_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

#include "here.hpp"

namespace tally::test {

Device here() { return Device::cpu; }

ProcessGroup& world() {
    static ProcessGroup processes({.timeout = 60});
    return processes;
}

#if TALLY_HAS_MPI
std::unique_ptr<ProcessGroup> first_processes(int count, bool backwards) {
    const int rank = world().rank();
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < count ? 0 : MPI_UNDEFINED, backwards ? -rank : rank, &some);
    if (some == MPI_COMM_NULL) return nullptr;
    auto processes =
        std::make_unique<ProcessGroup>(ProcessGroup::Options{.timeout = 60, .communicator = &some});
    MPI_Comm_free(&some);  // the ProcessGroup duplicates the communicator
    return processes;
}
#else
std::unique_ptr<ProcessGroup> first_processes(int, bool) { return std::make_unique<ProcessGroup>(); }
#endif

}  // namespace tally::test
