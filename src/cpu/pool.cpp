// The pool: threads that wait for work, begun when they are first needed.
#include "tally/cpu/pool.hpp"

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

#include "tally/kernels/kernels.hpp"

namespace tally::cpu {

namespace {

struct Work {
    const void* work;
    RunPart run;
    std::size_t parts;
    unsigned hands;

    // Of as many hands as there are.
    void take(std::size_t hand, const Workspace& workspace) const {
        for (std::size_t part = hand; part < parts; part += hands) run(work, part, workspace);
    }
};

// While one lives, the threads that are begun leave signals to those who asked for them.
class WithoutSignals {
public:
    WithoutSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    WithoutSignals(const WithoutSignals&) = delete;
    WithoutSignals& operator=(const WithoutSignals&) = delete;

private:
    sigset_t before_;
};

// Products follow one another within microseconds, and to wake a thread that sleeps takes tens of them: who waits stays
// awake for as long as that.
void wait_while(const std::atomic<unsigned>& now, unsigned is) {
    using Clock = std::chrono::steady_clock;
    for (const auto asleep = Clock::now() + std::chrono::microseconds(50); Clock::now() < asleep;)
        if (now.load() != is) return;
    now.wait(is);
}

// A process that was forked has none of the threads of the one that it was forked from.
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
        for (auto& helper : helpers_) helper->call();
        for (auto& helper : helpers_) helper->thread.join();
    }

    // False: it is at work already, or has no threads any more.
    bool run(Work work) {
        if (forked) return false;
        const Workspace& workspace = own_workspace();  // made before anybody is called: memory may run out
        const std::unique_lock only_one(mutex_, std::try_to_lock);
        if (!only_one) return false;
        work.hands = std::min(work.hands, 1 + grow_to(work.hands - 1));
        work_ = &work;
        busy_.store(work.hands - 1, std::memory_order_relaxed);
        for (unsigned i = 0; i + 1 < work.hands; ++i) helpers_[i]->call();
        work.take(0, workspace);
        for (unsigned busy = busy_.load(); busy != 0; busy = busy_.load()) wait_while(busy_, busy);
        return true;
    }

    static const Workspace& own_workspace() {
        static thread_local const Workspace workspace;
        return workspace;
    }

private:
    struct Helper {
        Workspace workspace;
        std::atomic<unsigned> calls{0};
        std::thread thread;

        void call() {
            calls.fetch_add(1);
            calls.notify_one();
        }
    };

    // How many there are then: fewer where the system gives no more threads, or no memory for them.
    unsigned grow_to(std::size_t count) {
        if (helpers_.size() >= count) return static_cast<unsigned>(helpers_.size());
        const WithoutSignals blocked;
        while (helpers_.size() < count) {
            const std::size_t hand = helpers_.size() + 1;
            try {
                helpers_.reserve(hand);
                auto made = std::make_unique<Helper>();
                Helper* const helper = made.get();
                helper->thread = std::thread([this, helper, hand] { serve(*helper, hand); });
                helpers_.push_back(std::move(made));
            } catch (const std::system_error&) {
                break;
            } catch (const std::bad_alloc&) {
                break;
            }
        }
        return static_cast<unsigned>(helpers_.size());
    }

    void serve(Helper& helper, std::size_t hand) {
        for (unsigned answered = 0;; ++answered) {
            wait_while(helper.calls, answered);
            if (ending_) return;
            work_->take(hand, helper.workspace);
            if (busy_.fetch_sub(1) == 1) busy_.notify_one();
        }
    }

    std::mutex mutex_;
    std::vector<std::unique_ptr<Helper>> helpers_;
    const Work* work_ = nullptr;
    std::atomic<unsigned> busy_{0};
    std::atomic<bool> ending_{false};
};

}  // namespace

void run_parts(std::size_t parts, const void* work, RunPart run) {
    static Pool pool;
    const auto hands = static_cast<unsigned>(std::min(parts, static_cast<std::size_t>(threads())));
    if (hands < 2 || !pool.run({work, run, parts, hands}))
        Work{work, run, parts, 1}.take(0, Pool::own_workspace());
}

}  // namespace tally::cpu
