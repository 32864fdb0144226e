// scenes_test.py runs this program. In each scene, one process fails, stops or makes different calls.
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#if TALLY_HAS_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#endif

#include "tally/core.hpp"
#include "tally/distributed.hpp"
#include "tally/io/training_state.hpp"
#include "tally/train.hpp"

using namespace tally;

namespace {

// Makes three updates with two micro-batches each. `scene` is what the last process does in the middle of the
// second update.
void train(ProcessGroup& processes, const std::string& scene) {
    const bool last = processes.rank() + 1 == processes.size();
    Linear<float> model(3, 2, {1, 0});
    Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
    DataParallel<float> ranks(processes);
    Window<float>::Options options;
    if (scene == "late")  // the schedule is called after the sums, before the barrier
        options.schedule = Schedule([&](std::int64_t update) {
            if (last && update == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
            return 0.1;
        });
    Window<float> window(sgd, options, &ranks);
    const auto add = [&] {
        window.add(
            mse(model(constant(Array<float>::full({2, 3}, 1))), constant(Array<float>::zeros({2, 2}))));
    };
    for (int update = 0; update < 3; ++update) {
        add();
        if (last && update == 1) {
            if (scene == "stops") raise(SIGSTOP);
            if (scene == "exits") std::_Exit(0);
            if (scene == "killed") raise(SIGKILL);
            if (scene == "throws") throw Error("a file has not been found");
            if (scene == "leaves") return;
            if (scene == "skips") {
                window.discard();
                continue;
            }
            if (scene == "extra") {
                window.finish();
                add();
            }
        }
        add();
        window.finish();
        if (scene == "late")
            std::cout << "rank " + std::to_string(processes.rank()) + " has made update " +
                             std::to_string(update) + "\n"
                      << std::flush;
    }
    ranks.require_same_weights();
    std::cout << "rank " + std::to_string(processes.rank()) + " of " + std::to_string(processes.size()) +
                     " has trained, " + std::to_string(detail::checksum(model.weight.value())) + "\n"
              << std::flush;
}

// Runs a pipe with one stage per process. `scene` is what the last process does in run 1.
void pipe(ProcessGroup& processes, const std::string& scene) {
    const Tensor weight = parameter(Array<float>::full({2, 2}, 0.5F));
    const bool last = processes.rank() + 1 == processes.size();
    int run = 0;
    Pipe<float> pipe(processes, {[&](const Tensor& x, int k) {
                         if (last && run == 1 && k == 2) {
                             if (scene == "stops in a pipe") raise(SIGSTOP);
                             if (scene == "killed in a pipe") raise(SIGKILL);
                             if (scene == "throws in a pipe") throw Error("a file has not been found");
                         }
                         return tanh(matmul(x, weight));
                     }});
    for (; run < 3; ++run)
        pipe.run(
            4,
            [](int) {
                return Array<float>::full({3, 2}, 1);
            },
            [](const Tensor& y, int) { return sum(y); });
    std::cout << "rank " + std::to_string(processes.rank()) + " has run the pipe\n" << std::flush;
}

// The last process makes only the first collective calls that add exact gradients, and then stops.
void stop_during_a_sum(ProcessGroup& processes) {
    const auto weight = parameter(Array<float>({1, 2}));
    Sgd<float> sgd({weight}, {.learning_rate = 0.1});
    DataParallel<float> ranks(processes);
    Window<float> window(sgd, {.sum = Sum::exact}, &ranks);
    window.add({sum(weight), constant(Array<float>::full({}, 1))});
    if (processes.rank() + 1 == processes.size()) {
        std::vector<detail::ExactSum<float>> sums;
        for (const Shape& shape : {Shape{2}, Shape{}, Shape{}})
            sums.emplace_back(shape).add(Array<float>::full(shape, 1));
        ranks.gather(sgd, "finish", 0, {.learning_rate = sgd.learning_rate()}, sums);
        processes.all_gather("effects, finish of window 0", detail::state_bytes({}));
        raise(SIGSTOP);
    }
    window.finish();
}

int run(const std::string& scene) try {
    const char* const timeout = std::getenv("TALLY_TIMEOUT");
    ProcessGroup processes(timeout ? ProcessGroup::Options{.timeout = std::atof(timeout)}
                                   : ProcessGroup::Options{});
    try {
        if (scene == "lost in a sum")
            stop_during_a_sum(processes);
        else if (scene.ends_with("in a pipe"))
            pipe(processes, scene);
        else
            train(processes, scene);
    } catch (const Error& error) {  // prints at once, before the launcher ends all processes
        std::cout << std::string(error.what()) + "\n" << std::flush;
        if (scene == "leaves") {
            std::this_thread::sleep_for(std::chrono::seconds(4));  // longer than the others need to save
            std::cout << "rank " + std::to_string(processes.rank()) + " has saved\n" << std::flush;
        }
        return 1;
    }
    return 0;
} catch (const Error& error) {  // no ProcessGroup could be made
    std::cout << error.what() << "\n";
    return 1;
}

#if TALLY_HAS_MPI
// Calls MPI_Finalize() before the ProcessGroup is destroyed. The destructor must not call MPI.
int run_after_mpi_finalize() {
    ProcessGroup processes;
    MPI_Finalize();
    try {
        processes.all_gather("a call");
    } catch (const Error& error) {
        std::cout << std::string(error.what()) + "\n" << std::flush;
    }
    return 0;
}

// Initializes MPI, makes two ProcessGroups with half of the processes each, and finally calls MPI again.
int run_in_halves() {
    MPI_Init(nullptr, nullptr);
    int rank = 0, sum = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    {
        ProcessGroup processes({.communicator = &half});
        train(processes, "in halves");
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    std::cout << "MPI continues: " + std::to_string(sum) + "\n" << std::flush;
    MPI_Finalize();
    return 0;
}
#endif

}  // namespace

int main(int argc, char** argv) {
    const std::string scene = argc > 1 ? argv[1] : "";
#if TALLY_HAS_MPI
    if (scene == "in halves") return run_in_halves();
    if (scene == "after MPI_Finalize") return run_after_mpi_finalize();
#endif
    return run(scene);
}
