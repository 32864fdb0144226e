// A `Machine` executes the launch of a kernel: one block after the other, and the threads of a block in a chosen
// order. It reports races, reads of memory that nothing was written to, and accesses outside of allocations.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "memory.hpp"
#include "program.hpp"

namespace tally::ptx {

enum class Order { forward, reverse, random };

struct Schedule {
    Order order = Order::forward;
    std::uint64_t seed = 0;

    static Schedule from(const std::string& words);  // "forward", "reverse", "random:7"
};

struct Thread {
    enum State : std::uint8_t { runs, waits, shuffles, ended };

    std::uint64_t* r = nullptr;  // the values of the slots
    std::uint32_t next = 0;      // the instruction
    State state = runs;
    bool carry = false;
    std::uint64_t steps = 0;  // since the last barrier
    unsigned index = 0;       // in the block
};

// An access that changed global memory.
struct Write {
    std::uint64_t address, before;
    std::size_t bytes;
};

// Ends a launch. The message has been recorded.
struct Stop {};

class Machine {
public:
    Machine(const Program& program, const Kernel& kernel, unsigned blocks, unsigned threads,
            std::vector<std::byte> parameters, Schedule schedule);

    // Adds all changes of global memory to `writes`.
    void record(std::vector<Write>& writes) { writes_ = &writes; }
    // Sets an element of `executed` for each instruction that a thread reaches.
    void cover(std::vector<bool>& executed) { executed_ = &executed; }
    void set_limit(std::uint64_t steps) { most_steps_ = steps; }  // a longer launch is a finding
    void run();
    const std::vector<std::string>& findings() const { return findings_; }
    bool is_stopped() const { return is_stopped_; }  // by the last finding
    std::uint64_t steps() const { return steps_; }

    // ---- for instructions ----

    enum class Use { read, write };
    // Checks an access, and returns the place in the host's memory.
    template <Use use>
    std::byte* at(Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes) {
        if (address < first_global) [[unlikely]]
            return in_window(t, i, address, bytes, use);
        if (i.space > Space::global) [[unlikely]]
            stop(t, i, "a global address is used for another kind of memory");
        Allocation* found = i.latest;
        if (found == nullptr || address - found->base >= found->bytes) [[unlikely]]
            found = i.latest = Memory::one().find(address);
        if (found == nullptr || address - found->base > found->bytes - bytes || found->bytes < bytes ||
            found->is_free) [[unlikely]]
            outside(t, i, address, bytes, found);
        if (address % bytes != 0) [[unlikely]]
            misaligned(t, i, address, bytes);
        if (found->unit > bytes || found->marks.empty()) [[unlikely]]
            prepare(*found, bytes);
        const std::uint64_t from = (address - found->base) / found->unit, units = bytes / found->unit;
        const Access now = moment(t);
        for (std::uint64_t k = from; k < from + units; ++k) {
            Marks& marks = found->marks[k];
            const std::uint32_t other = use == Use::write ? marks.write(now) : marks.read(now);
            if (other != Marks::none) [[unlikely]]
                race(t, i, "global", address, other, use);
        }
        auto* const place = reinterpret_cast<std::byte*>(address);
        if (use == Use::write && writes_ != nullptr) [[unlikely]] {
            writes_->push_back({address, 0, bytes});
            std::memcpy(&writes_->back().before, place, bytes);
        }
        return place;
    }
    void require_aligned(const Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes) {
        if (address % bytes != 0) [[unlikely]]
            misaligned(t, i, address, bytes);
    }
    // Copies local memory, written or not, as calls do with arguments.
    void copy_local(const Thread& t, std::uint64_t from, std::uint64_t to, std::size_t bytes);
    std::span<const std::uint32_t> list(std::uint32_t from, std::size_t count) const {
        return {kernel_.lists.data() + from, count};
    }

private:
    Access moment(const Thread& t) const { return {first_ + t.index, epoch_, block_epoch_, launch_epoch_}; }
    std::byte* in_window(Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes, Use use);
    static void prepare(Allocation& found, std::size_t bytes);
    void begin_block(unsigned block);
    void run_block();
    bool run_warp(unsigned warp);
    template <bool covers> void run_thread(Thread& t, std::uint64_t limit);
    void shuffle(unsigned warp);
    void shuffle_from(unsigned warp, Thread& first);
    void release_barrier();
    void explain_standstill();

    void note(const Thread& t, const Instruction& i, const std::string& what);
    [[noreturn]] void stop(const Thread& t, const Instruction& i, const std::string& what);
    [[noreturn]] void outside(const Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes,
                              const Allocation* found);
    [[noreturn]] void misaligned(const Thread& t, const Instruction& i, std::uint64_t address,
                                 std::size_t bytes);
    void race(const Thread& t, const Instruction& i, const char* space, std::uint64_t address,
              std::uint32_t other, Use use);

    const Program& program_;
    const Kernel& kernel_;
    const unsigned blocks_, threads_;
    std::vector<std::byte> parameters_;
    const Schedule schedule_;
    std::mt19937_64 draw_;

    std::vector<Thread> thread_;
    unsigned waiting_ = 0, ended_ = 0;
    std::vector<std::byte> shared_, local_;
    std::vector<Marks> shared_marks_;
    std::vector<bool> local_written_;
    std::uint32_t block_ = 0, first_ = 0, epoch_ = 0, block_epoch_ = 0, launch_epoch_ = 0;
    std::uint64_t steps_ = 0, most_steps_;
    std::vector<Write>* writes_ = nullptr;
    std::vector<bool>* executed_ = nullptr;

    std::vector<std::string> findings_;
    bool is_stopped_ = false;
    std::set<std::pair<std::string, std::uint32_t>> noted_;
};

}  // namespace tally::ptx
