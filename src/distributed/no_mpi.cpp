// The wire where tally was built without MPI: one rank, to whom nobody speaks.
#include <cstdint>
#include <cstdlib>

#include "tally/base/error.hpp"
#include "tally/distributed/wire.hpp"

namespace tally::detail {

struct Wire::State {};

namespace {
constexpr const char* advice =
    "; install an MPI (Debian: libopenmpi-dev openmpi-bin), and configure tally anew";
}

Wire::Wire(const void* communicator) {
    if (communicator)
        throw Error(std::string("[processes] a communicator was given, but tally was built without MPI") +
                    advice);
}

Wire::~Wire() = default;

std::string Wire::why_alone() {
    return std::string("tally was built without MPI: each of them would train for itself") + advice;
}

int Wire::rank() const { return 0; }
int Wire::size() const { return 1; }

Wire::Words Wire::tell(const std::string& mine, double) { return {mine}; }
const std::string* Wire::next(int) { return nullptr; }
bool Wire::move(std::span<const Piece>, std::span<const Piece>, double) { return true; }
template <class S> bool Wire::sum(const S* mine, S* all, std::size_t count, double) {
    for (std::size_t i = 0; i < count; ++i) all[i] = mine[i];
    return true;
}
bool Wire::take(const Piece&, double) { return true; }
void Wire::post(const std::string&, const Piece&, std::shared_ptr<const void>) {}
std::size_t Wire::under_way() { return 0; }
std::optional<std::string> Wire::label_of(int) { return {}; }
bool Wire::wait(double, const std::function<bool()>& done) { return done(); }
void Wire::abort(const std::string&) { std::abort(); }  // nothing is waited for
bool Wire::gather_to_end(double) noexcept { return true; }
void Wire::end(bool) noexcept {}

template bool Wire::sum(const float*, float*, std::size_t, double);
template bool Wire::sum(const double*, double*, std::size_t, double);
template bool Wire::sum(const std::int64_t*, std::int64_t*, std::size_t, double);

}  // namespace tally::detail
