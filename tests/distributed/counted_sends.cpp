// Counts the calls of MPI_Isend, by replacing this function through the profiling interface of MPI.
#include "distributed/counted_sends.hpp"

#if TALLY_HAS_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

namespace tally::test {

namespace {
CountedSends counted;
}

CountedSends counted_sends() { return counted; }

#if TALLY_HAS_MPI
extern "C" int MPI_Isend(const void* at, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
    int bytes = 0;
    MPI_Type_size(type, &bytes);
    ++counted.messages;
    counted.bytes += static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(bytes);
    return PMPI_Isend(at, count, type, to, tag, comm, request);
}
#endif

}  // namespace tally::test
