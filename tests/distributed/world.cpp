// One Processes for the whole program, which ends when the program does; and where it computes.
#include "distributed/world.hpp"

#if TALLY_HAS_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

#include "here.hpp"

namespace tally::test {

Device here() { return Device::cpu; }

Processes& world() {
    static Processes processes({.patience = 60});
    return processes;
}

#if TALLY_HAS_MPI
std::unique_ptr<Processes> first_processes(int count, bool backwards) {
    const int rank = world().rank();
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank < count ? 0 : MPI_UNDEFINED, backwards ? -rank : rank, &some);
    if (some == MPI_COMM_NULL) return nullptr;
    auto processes = std::make_unique<Processes>(ProcessesOptions{.patience = 60, .communicator = &some});
    MPI_Comm_free(&some);  // they have a copy
    return processes;
}
#else
std::unique_ptr<Processes> first_processes(int, bool) { return std::make_unique<Processes>(); }
#endif

}  // namespace tally::test
