// Implements `MpiTransport` for a build without MPI, with a single rank.
#include <cstdint>
#include <cstdlib>

#include "tally/base/error.hpp"
#include "tally/distributed/mpi_transport.hpp"

namespace tally::detail {

struct MpiTransport::State {};

constexpr const char* advice =
    "tally was built without MPI; install an MPI (Debian: libopenmpi-dev openmpi-bin), and configure tally "
    "again";

MpiTransport::MpiTransport(const void* communicator) {
    require(!communicator, "processes", "a communicator was passed, but ", advice);
}

MpiTransport::~MpiTransport() = default;

std::string MpiTransport::why_only_one_rank() { return advice; }

int MpiTransport::rank() const { return 0; }
int MpiTransport::size() const { return 1; }

MpiTransport::Messages MpiTransport::all_gather(const std::string& mine, double) { return {mine}; }
const std::string* MpiTransport::peek_message(int) { return nullptr; }
bool MpiTransport::exchange(std::span<const Piece>, std::span<const Piece>, double) { return true; }
template <class S> bool MpiTransport::sum(const S* mine, S* all, std::size_t count, double) {
    for (std::size_t i = 0; i < count; ++i) all[i] = mine[i];
    return true;
}
bool MpiTransport::receive(const Piece&, double) { return true; }
void MpiTransport::post(const std::string&, const Piece&, std::shared_ptr<const void>) {}
std::size_t MpiTransport::free_sent() { return 0; }
std::optional<std::string> MpiTransport::poll_label(int) { return {}; }
bool MpiTransport::wait(double, const std::function<bool()>& done) { return done(); }
void MpiTransport::abort(const std::string&) { std::abort(); }  // never called, since no call waits
bool MpiTransport::barrier_before_end(double) noexcept { return true; }
void MpiTransport::end(bool) noexcept {}

template bool MpiTransport::sum(const float*, float*, std::size_t, double);
template bool MpiTransport::sum(const double*, double*, std::size_t, double);
template bool MpiTransport::sum(const std::int64_t*, std::int64_t*, std::size_t, double);

}  // namespace tally::detail
