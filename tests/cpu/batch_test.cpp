// Loading and storing part of a register accesses no other memory.
#include <sys/mman.h>
#include <unistd.h>

#include "kernel_testing.hpp"
#include "tally/cpu/batch.hpp"

namespace tally::test {
namespace {

using cpu::Batch, cpu::lanes, cpu::line;

// A page that is followed by a page without access.
class LastPage {
public:
    LastPage()
        : start_(static_cast<std::byte*>(
              mmap(nullptr, 2 * size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        REQUIRE(start_ != MAP_FAILED);
        REQUIRE(mprotect(start_ + size_, size_, PROT_NONE) == 0);
    }
    LastPage(const LastPage&) = delete;
    LastPage& operator=(const LastPage&) = delete;
    ~LastPage() { munmap(start_, 2 * size_); }
    template <class S> S* last(std::size_t n) const { return reinterpret_cast<S*>(start_ + size_) - n; }

private:
    std::size_t size_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::byte* start_;
};

}  // namespace

TEMPLATE_TEST_CASE("load_part, store_part: access only the first n elements", "", float, double) {
    using S = TestType;
    constexpr std::size_t L = lanes<S>;
    const LastPage page;
    for (std::size_t n = 1; n <= L; ++n) {
        S* const p = page.last<S>(n);
        p[-1] = S(-7);
        for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<S>(i + 1);
        const Batch<S> loaded = cpu::load_part(p, n);
        alignas(line) S all[L];
        loaded.store_aligned(all);
        for (std::size_t i = 0; i < L; ++i) CHECK(all[i] == (i < n ? static_cast<S>(i + 1) : S(0)));

        cpu::store_part(loaded + Batch<S>(S(10)), p, n);
        for (std::size_t i = 0; i < n; ++i) CHECK(p[i] == static_cast<S>(i + 11));
        CHECK(p[-1] == S(-7));
    }
}

}  // namespace tally::test
