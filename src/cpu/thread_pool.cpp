// Implements the thread pool. Threads are started when they are first needed, and then wait for work.
#include "tally/cpu/thread_pool.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "tally/cpu/affinity.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

namespace {

struct Work {
    const void* work = nullptr;
    RunPart run = nullptr;
};

// Blocks all signals while the object exists, so that new threads handle no signals.
class BlockSignals {
public:
    BlockSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockSignals(const BlockSignals&) = delete;
    BlockSignals& operator=(const BlockSignals&) = delete;

private:
    sigset_t before_;
};

// Polls for a while before sleeping, because products follow each other within microseconds, but waking a
// sleeping thread takes tens of microseconds.
template <class GiveWay> void wait_while(const std::atomic<unsigned>& word, unsigned seen,
                                         std::chrono::microseconds awake, GiveWay give_way) {
    using Clock = std::chrono::steady_clock;
    for (const auto asleep = Clock::now() + awake; Clock::now() < asleep; give_way())
        if (word.load() != seen) return;
    word.wait(seen);
}

// A forked process has no threads of its parent process, and starts no new threads.
std::atomic<bool> forked = false;

class Pool {
public:
    Pool() {
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
    }
    ~Pool() {
        if (forked) {
            for (auto& helper : helpers_) helper->thread.detach();
            return;
        }
        ending_ = true;
        for (auto& helper : helpers_) helper->wake();
        for (auto& helper : helpers_) helper->thread.join();
    }

    // Runs all parts, or returns false if the pool is busy or the process was forked.
    bool run(const Work& work, unsigned parts, unsigned workers) {
        if (forked) return false;
        const std::unique_lock only_one(mutex_, std::try_to_lock);
        if (!only_one) return false;
        const unsigned workers_wanted = grow_to(workers - 1);
        work_ = work;
        unfinished_.store(parts);
        tasks_left_.store(parts);  // from here on, threads that are awake take parts
        // If there are more threads than cores, threads must share cores, so wake() may use any core.
        for (unsigned i = 0; i < workers_wanted; ++i)
            workers <= cores_ ? helpers_[i]->call() : helpers_[i]->wake();
        take_parts(own_workspace());
        for (unsigned n = unfinished_.load(); n != 0; n = unfinished_.load())
            wait_while(unfinished_, n, std::chrono::microseconds(50), [] {});
        return true;
    }

    static Workspace& own_workspace() {
        static thread_local Workspace workspace;
        return workspace;
    }

private:
    struct Helper {
        Workspace workspace;
        std::atomic<unsigned> calls{0}, heard{0};
        std::atomic<int> core{-1};  // the core on which the thread waits
        std::thread thread;

        void wake() {
            calls.fetch_add(1);
            calls.notify_one();
        }
        // The system may wake a thread on the caller's core, where the thread would start only after the
        // caller has finished all parts. call() therefore wakes the thread on a different core if the thread
        // waits on the caller's core, or has not yet woken up for the last call.
        void call() {
            const int here = this_core();
            if (core == here || heard != calls)
                wake_off_core(thread, here, [this] { wake(); });
            else
                wake();
        }
    };

    // Threads take parts from a common counter, so a thread that starts late does not delay other threads.
    void take_parts(const Workspace& workspace) {
        for (unsigned untaken = tasks_left_.load(); untaken != 0;)
            if (tasks_left_.compare_exchange_weak(untaken, untaken - 1)) {
                work_.run(work_.work, untaken - 1, workspace);
                if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_one();
                untaken = tasks_left_.load();
            }
    }

    // Starts up to `count` threads, or fewer if the system cannot start more, and returns their number.
    unsigned grow_to(std::size_t count) {
        while (helpers_.size() < count) {
            const BlockSignals blocked;
            try {
                helpers_.reserve(helpers_.size() + 1);
                auto made = std::make_unique<Helper>();
                made->workspace.allocate();
                Helper* const helper = made.get();
                helper->thread = std::thread([this, helper] { serve(*helper); });
                helpers_.push_back(std::move(made));
            } catch (const std::system_error&) {
                break;
            } catch (const std::bad_alloc&) {
                break;
            }
        }
        return static_cast<unsigned>(std::min(helpers_.size(), count));
    }

    void serve(Helper& helper) {
        while (!ending_) {
            take_parts(helper.workspace);
            helper.core = this_core();
            wait_while(helper.calls, helper.heard, std::chrono::microseconds(200), std::this_thread::yield);
            helper.heard = helper.calls.load();
        }
    }

    const unsigned cores_ = std::thread::hardware_concurrency();
    std::mutex mutex_;
    std::vector<std::unique_ptr<Helper>> helpers_;
    Work work_;
    std::atomic<unsigned> tasks_left_{0}, unfinished_{0};  // parts of work_ not taken, and parts not finished
    std::atomic<bool> ending_{false};
};

}  // namespace

void allocate_workspace() { Pool::own_workspace().allocate(); }

void run_parts(std::size_t parts, const void* work, RunPart run) {
    static Pool pool;
    const auto workers = static_cast<unsigned>(std::min(parts, static_cast<std::size_t>(threads())));
    if (workers >= 2 && pool.run({work, run}, static_cast<unsigned>(parts), workers)) return;
    for (std::size_t part = 0; part < parts; ++part) run(work, part, Pool::own_workspace());
}

}  // namespace tally::cpu
