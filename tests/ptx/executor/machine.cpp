// Runs the threads of a block, their barriers and shuffles, and words what the machine finds.
#include "machine.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tally::ptx {

namespace {

constexpr unsigned warp = 32;
// A thread that runs longer without a barrier, or a launch that runs longer, has a loop without an end.
constexpr std::uint64_t most_of_thread = std::uint64_t{1} << 28, most_of_launch = std::uint64_t{1} << 36;
constexpr std::size_t most_findings = 20;
constexpr std::byte garbage{0xEE};

std::uint32_t latest_epoch = 0;  // one launch runs at a time

std::string readable(const std::string& mangled) {
    int failed = 0;
    char* const name = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &failed);
    const std::string words = failed == 0 ? name : mangled;
    std::free(name);
    return words.substr(0, words.rfind('('));
}

}  // namespace

Schedule Schedule::from(const std::string& words) {
    if (words == "forward") return {};
    if (words == "reverse") return {.order = Order::reverse};
    if (words.rfind("random:", 0) == 0 && words.size() > 7 &&
        words.find_first_not_of("0123456789", 7) == words.npos)
        return {.order = Order::random, .seed = std::strtoull(words.c_str() + 7, nullptr, 10)};
    throw Unreadable("[ptx] the order of threads is '" + words +
                     "'; it may be forward, reverse or random:SEED");
}

Machine::Machine(const Program& program, const Kernel& kernel, unsigned blocks, unsigned threads,
                 std::vector<std::byte> parameters, Schedule schedule)
    : program_(program),
      kernel_(kernel),
      blocks_(blocks),
      threads_(threads),
      parameters_(std::move(parameters)),
      schedule_(schedule),
      draw_(schedule.seed + latest_epoch),
      most_steps_(most_of_launch) {
    const std::size_t count = kernel.slots.size();
    for (std::size_t ready = kernel.registers.size(); ready < count * threads; ready += count)
        kernel.registers.insert(kernel.registers.end(), kernel.slots.begin(), kernel.slots.end());
    thread_.resize(threads);
    for (unsigned t = 0; t < threads; ++t) {
        std::uint64_t* const r = kernel.registers.data() + t * count;
        r[kernel.thread] = t;
        r[kernel.lane] = t % warp;
        r[kernel.threads] = threads;
        r[kernel.blocks] = blocks;
        thread_[t].r = r;
        thread_[t].index = t;
    }
    shared_.resize(kernel.shared_bytes);
    shared_marks_.resize(kernel.shared_bytes);
    local_.resize(kernel.local_bytes * threads);
    local_written_.resize(kernel.local_bytes * threads);
}

void Machine::run() {
    std::vector<unsigned> order(blocks_);
    std::iota(order.begin(), order.end(), 0u);
    if (schedule_.order == Order::reverse) std::reverse(order.begin(), order.end());
    if (schedule_.order == Order::random) std::shuffle(order.begin(), order.end(), draw_);
    launch_epoch_ = latest_epoch + 1;
    try {
        for (const unsigned block : order) {
            begin_block(block);
            run_block();
        }
    } catch (const Stop&) {
        is_stopped_ = true;
    }
}

void Machine::begin_block(unsigned block) {
    block_ = block;
    first_ = block * threads_;
    epoch_ = block_epoch_ = ++latest_epoch;
    if (latest_epoch > 0xF000'0000)
        throw Unreadable("[ptx] the program has run too many blocks for one process");
    for (Thread& t : thread_) {
        t.r[kernel_.block] = block;
        t.next = 0;
        t.steps = 0;
        t.state = Thread::runs;
    }
    waiting_ = ended_ = 0;
    std::fill(shared_.begin(), shared_.end(), garbage);
    std::fill(local_.begin(), local_.end(), garbage);
    std::fill(local_written_.begin(), local_written_.end(), false);
}

void Machine::run_block() {
    std::vector<unsigned> warps((threads_ + warp - 1) / warp);
    std::iota(warps.begin(), warps.end(), 0u);
    if (schedule_.order == Order::reverse) std::reverse(warps.begin(), warps.end());
    while (true) {
        if (schedule_.order == Order::random) std::shuffle(warps.begin(), warps.end(), draw_);
        bool advanced = false;
        for (const unsigned one : warps) advanced = run_warp(one) || advanced;
        if (ended_ == threads_) return;
        if (ended_ + waiting_ == threads_)
            release_barrier();
        else if (!advanced)
            explain_standstill();
    }
}

// Runs the lanes of a warp until all of them wait or have ended; in random order, only a few instructions of some.
bool Machine::run_warp(unsigned one) {
    const unsigned from = one * warp, count = std::min(warp, threads_ - from);
    bool advanced = false, again = true;
    while (again) {
        again = false;
        const auto offset = schedule_.order == Order::random ? static_cast<unsigned>(draw_() % count) : 0;
        for (unsigned k = 0; k < count; ++k) {
            const unsigned lane = schedule_.order == Order::reverse ? count - 1 - k : (k + offset) % count;
            Thread& t = thread_[from + lane];
            if (t.state != Thread::runs) continue;
            const std::uint64_t limit = schedule_.order == Order::random
                                            ? draw_() % 64 + 1
                                            : std::min(most_of_thread, most_steps_) + 1;
            executed_ == nullptr ? run_thread<false>(t, limit) : run_thread<true>(t, limit);
            again = true;
        }
        shuffle(one);
        advanced = advanced || again;
        if (schedule_.order == Order::random && draw_() % 4 == 0) break;
    }
    return advanced;
}

template <bool covers> void Machine::run_thread(Thread& t, std::uint64_t limit) {
    const Instruction* const code = kernel_.code.data();
    std::uint64_t* const r = t.r;
    std::uint32_t next = t.next;
    const std::uint64_t before = limit;
    for (; limit > 0; --limit) {
        if constexpr (covers) (*executed_)[next] = true;
        const Instruction& i = code[next++];
        if (i.guard != 0 && ((r[i.guard] & 1) != 0) == i.negated) continue;
        if (i.kind == Kind::plain) [[likely]] {
            i.run(*this, t, i);
            continue;
        }
        if (i.kind == Kind::branch) {
            next = i.target;
        } else if (i.kind == Kind::call) {
            r[i.d] = next;
            next = i.target;
        } else if (i.kind == Kind::leave) {
            next = static_cast<std::uint32_t>(r[i.a]);
        } else {
            --next;
            t.state = i.kind == Kind::barrier   ? Thread::waits
                      : i.kind == Kind::shuffle ? Thread::shuffles
                                                : Thread::ended;
            if (t.state == Thread::waits) ++waiting_;
            if (t.state == Thread::ended) ++ended_;
            break;
        }
    }
    t.next = next;
    steps_ += before - limit;
    t.steps += before - limit;
    if (t.steps > most_of_thread || steps_ > most_steps_) stop(t, code[next], "the kernel does not end");
}

// Exchanges values between lanes of which all have reached the same shuffle.
void Machine::shuffle(unsigned one) {
    const unsigned from = one * warp, until = std::min(from + warp, threads_);
    for (unsigned t = from; t < until; ++t)
        if (thread_[t].state == Thread::shuffles) shuffle_from(one, thread_[t]);
}

void Machine::shuffle_from(unsigned one, Thread& first) {
    const unsigned from = one * warp;
    const Instruction& i = kernel_.code[first.next];
    const auto members = static_cast<std::uint32_t>(first.r[static_cast<std::size_t>(i.offset)]);
    if ((members >> (first.index - from) & 1) == 0)
        stop(first, i, "a lane is not in the mask of its shuffle");
    for (unsigned lane = 0; lane < warp; ++lane) {
        if ((members >> lane & 1) == 0) continue;
        if (from + lane >= threads_ || thread_[from + lane].state == Thread::ended)
            stop(first, i,
                 "a shuffle waits for lane " + std::to_string(lane) + ", which has ended or does not exist");
        const Thread& t = thread_[from + lane];
        if (t.state != Thread::shuffles || t.next != first.next) return;
        if (static_cast<std::uint32_t>(t.r[static_cast<std::size_t>(i.offset)]) != members)
            stop(t, i, "the lanes of a shuffle have different masks");
    }
    std::uint64_t values[warp], results[warp];
    for (unsigned lane = 0; lane < warp; ++lane)
        values[lane] = members >> lane & 1 ? thread_[from + lane].r[i.a] : 0;
    for (unsigned lane = 0; lane < warp; ++lane) {
        if ((members >> lane & 1) == 0) continue;
        Thread& t = thread_[from + lane];
        const auto distance = static_cast<std::uint32_t>(t.r[i.c]) & 31,
                   bounds = static_cast<std::uint32_t>(t.r[i.e]);
        const std::uint32_t segment = bounds >> 8 & 31, clamp = bounds & 31;
        const std::uint32_t lowest = lane & segment, last = lowest | (clamp & ~segment);
        std::uint32_t source = lane;
        bool is_inside = false;
        switch (i.count) {
            case 0:  // up
                source = lane - distance;
                is_inside = static_cast<std::int32_t>(source) >= static_cast<std::int32_t>(last);
                break;
            case 1:
                source = lane + distance, is_inside = source <= last;
                break;
            case 2:
                source = lane ^ distance, is_inside = source <= last;
                break;
            default:
                source = lowest | (distance & ~segment), is_inside = source <= last;
                break;
        }
        if (!is_inside) source = lane;
        if ((members >> source & 1) == 0)
            stop(t, i, "a shuffle reads lane " + std::to_string(source) + ", which takes no part");
        results[lane] = static_cast<std::uint32_t>(values[source]);
        t.r[i.b] = is_inside;
    }
    for (unsigned lane = 0; lane < warp; ++lane) {
        if ((members >> lane & 1) == 0) continue;
        Thread& t = thread_[from + lane];
        t.r[i.d] = results[lane];
        ++t.next;
        t.state = Thread::runs;
    }
}

// Lets all threads go on that wait for a barrier.
void Machine::release_barrier() {
    const Thread& first = *std::find_if(thread_.begin(), thread_.end(),
                                        [](const Thread& t) { return t.state == Thread::waits; });
    for (Thread& t : thread_) {
        if (t.state == Thread::ended)
            stop(first, kernel_.code[first.next],
                 "thread " + std::to_string(t.index) + " has ended, and never reaches this barrier");
        if (t.next != first.next)
            stop(first, kernel_.code[first.next],
                 "thread " + std::to_string(t.index) + " waits at another barrier, in line " +
                     std::to_string(kernel_.code[t.next].line));
    }
    for (Thread& t : thread_) {
        ++t.next;
        t.steps = 0;
        t.state = Thread::runs;
    }
    waiting_ = 0;
    epoch_ = ++latest_epoch;
}

void Machine::explain_standstill() {
    for (const Thread& t : thread_)
        if (t.state == Thread::shuffles)
            stop(t, kernel_.code[t.next], "deadlock: other lanes of the mask never reach this shuffle");
}

std::byte* Machine::in_window(Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes,
                              Use use) {
    const auto within = [&](Space space, std::uint64_t window, std::size_t size) {
        const bool fits = i.space == Space::any || i.space == space ||
                          (i.space == Space::parameters && space == Space::local);  // of calls
        return fits && address >= window && address - window + bytes <= size;
    };
    if (address % bytes != 0) misaligned(t, i, address, bytes);
    if (within(Space::shared, shared_window, shared_.size())) {
        const std::uint64_t from = address - shared_window;
        const Access now{first_ + t.index, epoch_, block_epoch_,
                         block_epoch_};  // earlier blocks had other memory
        for (std::uint64_t k = from; k < from + bytes; ++k) {
            if (use == Use::read && !shared_marks_[k].is_written_in_block(now))
                note(t, i,
                     "shared memory is read before a thread writes it, at byte " + std::to_string(from));
            const std::uint32_t other =
                use == Use::write ? shared_marks_[k].write(now) : shared_marks_[k].read(now);
            if (other != Marks::none) race(t, i, "shared", from, other, use);
        }
        return shared_.data() + from;
    }
    if (within(Space::local, local_window, kernel_.local_bytes)) {
        const std::uint64_t from = address - local_window + t.index * kernel_.local_bytes;
        for (std::uint64_t k = from; k < from + bytes; ++k) {
            if (use == Use::read && !local_written_[k])
                note(t, i,
                     "local memory is read before the thread writes it, at byte " +
                         std::to_string(address - local_window));
            if (use == Use::write) local_written_[k] = true;
        }
        return local_.data() + from;
    }
    if (use == Use::read && within(Space::parameters, parameter_window, parameters_.size()))
        return parameters_.data() + (address - parameter_window);
    stop(t, i,
         "an access of " + std::to_string(bytes) +
             " bytes is outside of shared and local memory, and of the parameters");
}

void Machine::copy_local(const Thread& t, std::uint64_t from, std::uint64_t to, std::size_t bytes) {
    const std::uint64_t before = t.index * kernel_.local_bytes - local_window;
    for (std::uint64_t k = before; k < before + bytes; ++k) {
        local_[to + k] = local_[from + k];
        local_written_[to + k] = local_written_[from + k];
    }
}

void Machine::prepare(Allocation& found, std::size_t bytes) {
    if (found.marks.empty()) {
        found.unit = bytes;
        found.marks.resize((found.bytes + bytes - 1) / bytes);
    }
    if (bytes < found.unit) found.refine(bytes);
}

void Machine::note(const Thread& t, const Instruction& i, const std::string& what) {
    if (!noted_.emplace(what.substr(0, 40), i.line).second || findings_.size() >= most_findings) return;
    const auto at = static_cast<std::size_t>(&i - kernel_.code.data());
    const std::string source = program_.words(kernel_.source[at]);
    std::string text = kernel_.text[at];
    std::replace(text.begin(), text.end(), '\t', ' ');
    const auto both_blank = [](char a, char b) { return a == ' ' && b == ' '; };
    text.erase(std::unique(text.begin(), text.end(), both_blank), text.end());
    findings_.push_back("[ptx] " + readable(kernel_.name) + ": " + what + " (block " +
                        std::to_string(block_) + ", thread " + std::to_string(t.index) + ", line " +
                        std::to_string(i.line) + " of the PTX" + (source.empty() ? "" : ", " + source) +
                        ": " + text + ")");
}

void Machine::stop(const Thread& t, const Instruction& i, const std::string& what) {
    note(t, i, what);
    throw Stop();
}

void Machine::outside(const Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes,
                      const Allocation* found) {
    std::string place = "an address without an allocation";
    if (found != nullptr)
        place = "byte " + std::to_string(address - found->base) + " of an allocation of " +
                std::to_string(found->bytes) + " bytes" + (found->is_free ? ", after its release" : "");
    stop(t, i, "an access of " + std::to_string(bytes) + " bytes at " + place);
}

void Machine::misaligned(const Thread& t, const Instruction& i, std::uint64_t address, std::size_t bytes) {
    stop(t, i,
         "an access of " + std::to_string(bytes) + " bytes at address " + std::to_string(address) +
             ", which is not aligned");
}

void Machine::race(const Thread& t, const Instruction& i, const char* space, std::uint64_t address,
                   std::uint32_t other, Use use) {
    const bool same_block = other == Marks::several || other / threads_ == block_;
    const std::string block = same_block ? "" : "block " + std::to_string(other / threads_) + ", ",
                      other_thread = other == Marks::several
                                         ? "other threads"
                                         : block + "thread " + std::to_string(other % threads_);
    const Allocation* const found = address < first_global ? nullptr : Memory::one().find(address);
    const std::string place =
        "byte " + std::to_string(found ? address - found->base : address) +
        (found ? " of an allocation of " + std::to_string(found->bytes) + " bytes" : "");
    note(t, i,
         std::string("race: a thread ") + (use == Use::write ? "writes " : "reads ") + space +
             " memory that " + other_thread + (use == Use::write ? " accessed" : " wrote") +
             (same_block ? ", without a barrier in between" : "") + "; " + place);
}

}  // namespace tally::ptx
