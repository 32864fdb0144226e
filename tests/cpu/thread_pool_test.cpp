// Tests that every part runs once, in the thread pool or, if the pool is busy, in the calling thread.
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "count_allocations.hpp"
#include "kernel_testing.hpp"
#include "tally/cpu/affinity.hpp"
#include "tally/cpu/thread_pool.hpp"
#include "tally/memory/memory.hpp"

namespace tally::test {
namespace {

cpu_set_t cores_of(std::thread& thread) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    pthread_getaffinity_np(thread.native_handle(), sizeof cores, &cores);
    return cores;
}

}  // namespace

TEST_CASE("thread pool: every part runs once and has its own buffer") {
    for (int threads = 1; threads <= 4; ++threads) {
        const Threads some(threads);
        cpu::allocate_workspace();
        for (std::size_t parts = 0; parts <= 9; ++parts) {
            std::array<std::atomic<int>, 9> ran{};
            cpu::parallel_for(parts, [&](std::size_t part, const cpu::Workspace& room) {
                room.a<float>()[0] = static_cast<float>(part);
                room.b<double>()[0] = static_cast<double>(part);
                ran.at(part) += room.a<float>()[0] == static_cast<float>(part) &&
                                room.b<double>()[0] == static_cast<double>(part);
            });
            INFO(parts << " parts, " << threads << " threads");
            for (std::size_t part = 0; part < ran.size(); ++part) CHECK(ran[part] == (part < parts));
        }
    }
}

TEST_CASE("thread pool: every part runs once even when threads are late") {
    std::atomic<std::size_t> parts_run{0};
    std::size_t wanted = 0;
    for (int round = 0; round < 20000; ++round) {
        const Threads some(1 + round % 4);
        const auto parts = static_cast<std::size_t>(1 + round / 4 % 5);
        std::array<std::atomic<int>, 5> ran{};
        cpu::parallel_for(parts, [&](std::size_t part, const cpu::Workspace&) {
            ++ran.at(part);
            ++parts_run;
        });
        wanted += parts;
        for (std::size_t part = 0; part < parts; ++part)
            if (ran[part] != 1) FAIL("part " << part << " of " << parts << " ran " << ran[part] << " times");
    }
    CHECK(parts_run == wanted);
}

TEST_CASE("thread pool: the caller waits only for parts that a thread has begun") {
    const Threads two(2);
    const std::thread::id caller = std::this_thread::get_id();
    for (int round = 0; round < 50; ++round) {
        std::atomic<int> others_done{0};
        std::atomic<bool> slow_begun{false}, slow_done{true};
        std::atomic<int> too_long{0};
        cpu::parallel_for(4, [&](std::size_t, const cpu::Workspace&) {
            // One part of another thread ends after all other parts. Threads of earlier tests may run parts, too.
            if (std::this_thread::get_id() != caller && !slow_begun.exchange(true)) {
                slow_done = false;
                const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
                while (others_done < 3 && !too_long)
                    if (std::chrono::steady_clock::now() > deadline) ++too_long;
                // The caller must wait for this slow part.
                for (std::atomic<int> work{0}; work < 20000;) ++work;
                slow_done = true;
            }
            ++others_done;
        });
        CHECK(slow_done);
        CHECK(too_long == 0);
    }
}

TEST_CASE("thread pool: a thread leaves a restricted core when it wakes, and gets all cores back") {
    std::atomic<int> step{0}, calls{0};
    std::thread waits([&] { step.wait(0); });
    const int core = cpu::this_core();
    const auto while_woken = [&] {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        cpu::wake_off_core(waits, core, [&] {
            cores = cores_of(waits);
            ++calls;
        });
        return cores;
    };
    const cpu_set_t all = cores_of(waits), during = while_woken(), afterwards = cores_of(waits);
    cpu_set_t others = all, one;
    if (CPU_COUNT(&all) > 1) CPU_CLR(core, &others);
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(waits.native_handle(), sizeof one, &one);
    const cpu_set_t only = while_woken();
    step = 1;
    step.notify_one();
    waits.join();

    CHECK(calls == 2);
    CHECK(CPU_ISSET(core, &all));
    CHECK(CPU_EQUAL(&during, &others));
    CHECK(CPU_EQUAL(&afterwards, &all));
    CHECK(CPU_EQUAL(&only, &one));
}

TEST_CASE("memory report: includes the packing buffer of each multiplying thread until the thread ends") {
    const std::size_t before = memory::report().packing;
    std::size_t not_multiplying = 0, during = 0;
    std::thread([&] {
        cpu::parallel_for(1, [](std::size_t, const cpu::Workspace&) {});
        not_multiplying = memory::report().packing;
        cpu::allocate_workspace();
        cpu::allocate_workspace();
        during = memory::report().packing;
    }).join();
    CHECK(not_multiplying == before);
    CHECK(during == before + cpu::Workspace::bytes);
    const memory::Report after = memory::report();
    CHECK(after.packing == before);
    memory::Report report;
    report.packing = cpu::Workspace::bytes;
    CHECK(to_string(report).ends_with("; packing buffers 1.3 MiB\n"));
}

TEST_CASE("sgd, measure, a product with one row: a new thread allocates nothing, even for large operands") {
    constexpr std::size_t n = 70000;  // large enough for several threads
    const Buffer<float> value(n), gradient(n), row(1);
    const Buffer<double> found(2);
    for (const auto* part : {&value, &gradient, &row}) std::fill(part->begin(), part->end(), 1.f);
    std::vector<Update<float>> list(1);
    list[0].value = value.data();
    list[0].gradient = gradient.data();
    list[0].size = n;
    const SgdStep<float> step{-1, 0, 1, 0, false, false};
    fast<float>().sgd(list, step);  // may start threads and load the kernels
    long made = -1;
    std::thread([&] {
        const long before = allocations();
        fast<float>().sgd(list, step);
        fast<float>().measure(list, false, found.data());
        fast<float>().matmul({1, n, 1, false, false}, row.data(), value.data(), into(gradient, Write::set));
        made = allocations() - before;
    }).join();
    CHECK(made == 0);
    CHECK(value[n - 1] == -1);
}

TEST_CASE("thread pool: a forked process starts no threads and multiplies alone") {
    const Threads two(2);
    Dice dice(2);
    const Product p{256, 256, 256, false, false};
    const auto a = dice.numbers<float>(p.m * p.k), b = dice.numbers<float>(p.k * p.n);
    const Buffer<float> want(p.m * p.n), got(p.m * p.n);
    fast<float>().matmul(p, a.data(), b.data(), into(want, Write::set));
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        alarm(30);
        const auto tasks = [] {
            return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
        };
        set_threads(12);  // the pool had fewer threads before
        const auto before = tasks();
        fast<float>().matmul(p, a.data(), b.data(), into(got, Write::set));
        _exit(tasks() == before && bit_difference(got, want) == "" ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("thread pool: several threads multiply at the same time and get the bits of one") {
    const Threads three(3);
    Dice dice(1);
    const Product p{96, 128, 300, false, true};
    const auto a = dice.numbers<float>(p.m * p.k), b = dice.numbers<float>(p.k * p.n);
    const Buffer<float> want(p.m * p.n);
    plain<float>().matmul(p, a.data(), b.data(), into(want, Write::set));
    std::atomic<int> wrong{0};
    std::vector<std::thread> others;
    for (int i = 0; i < 3; ++i)
        others.emplace_back([&] {
            const Buffer<float> got(p.m * p.n);
            for (int times = 0; times < 50; ++times) {
                std::fill(got.begin(), got.end(), 0.f);
                fast<float>().matmul(p, a.data(), b.data(), into(got, Write::set));
                wrong += bit_difference(got, want) != "";
            }
        });
    for (auto& other : others) other.join();
    CHECK(wrong == 0);
}

}  // namespace tally::test
