// The wire where tally was built without MPI: one rank, to whom nobody speaks.
#include <cstdint>
#include <cstdlib>

#include "tally/base/error.hpp"
#include "tally/processes/wire.hpp"

namespace tally::detail {

struct Wire::State {};

Wire::Wire(const void* communicator) {
    const char* const advice =
        "; install an MPI (Debian: libopenmpi-dev openmpi-bin), and configure tally anew";
    if (communicator)
        throw Error(std::string("[processes] a communicator was given, but tally was built without MPI") +
                    advice);
    for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
        const char* const said = std::getenv(variable);
        if (said && std::atoi(said) > 1)
            throw Error(std::string("[processes] this program was started ") + said + " times (" + variable +
                        "), but tally was built without MPI: each of them would train for itself" + advice);
    }
}

Wire::~Wire() = default;

int Wire::rank() const { return 0; }
int Wire::size() const { return 1; }

Wire::Words Wire::tell(const std::string& mine, double) { return {mine}; }
bool Wire::move(std::span<const Piece>, std::span<const Piece>, double) { return true; }
template <class S> bool Wire::sum(const S* mine, S* all, std::size_t count, double) {
    for (std::size_t i = 0; i < count; ++i) all[i] = mine[i];
    return true;
}
bool Wire::gather_to_end(double) noexcept { return true; }
void Wire::end(bool) noexcept {}

template bool Wire::sum(const float*, float*, std::size_t, double);
template bool Wire::sum(const double*, double*, std::size_t, double);
template bool Wire::sum(const std::int64_t*, std::int64_t*, std::size_t, double);

}  // namespace tally::detail
