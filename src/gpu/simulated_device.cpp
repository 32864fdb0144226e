// The simulated device runs kernel bodies on the host, for machines without a GPU. As with a GPU, host code
// cannot access the memory of the device, and queued work runs only when the host waits.
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "tally/base/alignment.hpp"
#include "tally/base/error.hpp"
#include "tally/gpu/backend_entry.hpp"
#include "tally/gpu/on_host.hpp"
#include "tally/gpu/scratch.hpp"
#include "tally/gpu/staging.hpp"
#include "tally/memory/arena.hpp"
#include "tally/memory/memory.hpp"

namespace tally {

namespace {

class SimulatedDevice {
public:
    static constexpr std::size_t size = std::size_t{1} << 30;

    // The device object is never destroyed, because arrays may be freed while the program ends.
    static SimulatedDevice& one() {
        static SimulatedDevice* const made = new SimulatedDevice;
        return *made;
    }

    void* allocate(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        // Rounds up the size, because callers do not round sizes in builds with AddressSanitizer.
        const auto offset = arena_.take(memory::round_up_to_line(bytes));
        return offset ? base_ + *offset : nullptr;
    }
    void free(void* data, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        arena_.give(static_cast<std::size_t>(static_cast<std::byte*>(data) - base_),
                    memory::round_up_to_line(bytes));
    }

    void later(std::function<void()> task) {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(task));
        ++queued_;
        if (queue_.size() > 5000) run();
    }
    void wait() {
        const std::lock_guard lock(mutex_);
        ++waits_;
        run();
    }
    template <class F> void open(F f) {
        protect(PROT_READ | PROT_WRITE);
        f();
        protect(PROT_NONE);
    }
    std::uint64_t waits() const { return waits_; }
    std::uint64_t queued() const { return queued_; }
    std::uint64_t done() const { return queued_ - queue_.size(); }

private:
    SimulatedDevice()
        : base_(static_cast<std::byte*>(
              mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        if (base_ == MAP_FAILED) throw Error("[simulated] no address space for the memory of a device");
        madvise(base_, size, MADV_HUGEPAGE);  // with few pages, mprotect() is fast
    }
    void protect(int how) {
        if (mprotect(base_, size, how) != 0) throw Error("[simulated] mprotect failed");
    }
    void run() {
        if (queue_.empty()) return;
        open([&] {
            for (const auto& task : queue_) task();
        });
        queue_.clear();
    }

    std::mutex mutex_;
    std::byte* base_;
    memory::Arena arena_{size};
    std::vector<std::function<void()>> queue_;
    std::uint64_t waits_ = 0, queued_ = 0;
};

struct OnSimulated {
    template <class Body> static void each(const char* name, std::size_t n, const Body& body) {
        SimulatedDevice::one().later([=] { gpu::OnHost::each(name, n, body); });
    }
    template <std::size_t lanes, class Body>
    static void teams(const char* name, std::size_t count, const Body& body) {
        SimulatedDevice::one().later([=] { gpu::OnHost::teams<lanes>(name, count, body); });
    }
    static Products products() { return gpu::OnHost::products(); }
    template <class S> static void multiply(const detail::Product& p, const S* a, const S* b, Into<S[]> c) {
        SimulatedDevice::one().later([=] { gpu::OnHost::multiply(p, a, b, c); });
    }

    template <class S> using Scratch = gpu::LedgerScratch<S>;

    static gpu::WrongLabel* wrong_label() {
        static gpu::WrongLabel wrong;
        return &wrong;
    }
    static void throw_wrong_label() {}
};

// Copies data only when the host waits, so that tests detect a buffer that is overwritten before the copy.
struct Link {
    static void* pinned(std::size_t bytes) { return ::operator new(bytes); }
    static void send(void* to, const void* from, std::size_t bytes) {
        SimulatedDevice::one().later([=] { std::memcpy(to, from, bytes); });
    }
    static inline std::uint64_t marks[gpu::StagingRing::parts];
    static void mark(std::size_t part) { marks[part] = SimulatedDevice::one().queued(); }
    static void await(std::size_t part) {
        if (SimulatedDevice::one().done() < marks[part]) SimulatedDevice::one().wait();
    }
};

struct Simulated {
    static constexpr const char* name = "simulated";
    using On = OnSimulated;

    static std::string missing() { return ""; }

    static void* allocate(std::size_t bytes) { return SimulatedDevice::one().allocate(bytes); }
    static void free(void* data, std::size_t bytes) { SimulatedDevice::one().free(data, bytes); }
    static void fill(void* data, unsigned char byte, std::size_t bytes) {
        SimulatedDevice::one().later([=] { std::memset(data, byte, bytes); });
    }

    static void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes) {
        if (from_device == Device::cpu) {
            static auto& staging = *new gpu::Staging<Link>(Link{});
            return staging.upload(to, from, bytes);
        }
        if (to_device == from_device)
            return SimulatedDevice::one().later([=] { std::memcpy(to, from, bytes); });
        wait();
        SimulatedDevice::one().open([&] { std::memcpy(to, from, bytes); });
    }
    static std::uint64_t waits() { return SimulatedDevice::one().waits(); }

    template <class S> static detail::Kernels<S> kernels() { return gpu::table<On, S>(); }

    static void wait_after_each_launch(bool) {}
    static void* pinned_alloc(std::size_t bytes) {
        return ::operator new(bytes, std::align_val_t(memory::line));
    }

private:
    static void wait() {
        SimulatedDevice::one().wait();
        const gpu::WrongLabel seen = *On::wrong_label();
        *On::wrong_label() = {};
        if (seen.found) throw Error(words(seen));
    }
};

}  // namespace
}  // namespace tally

TALLY_MODULE(tally::Simulated)
