// kills_test.py runs this program, which saves a training run inside and between windows, and resumes it.
//
//     distributed_training FILE UPDATES ROUND [TIMEOUT [RANK EVENT WHAT MICROSECONDS]]
//
// An event is the beginning or the end of a micro-batch, a written file, or an update. MICROSECONDS after the
// event number EVENT, the process RANK is killed or stopped. At the end each process prints its weights.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "tally/base/checksum.hpp"
#include "tally/core.hpp"
#include "tally/distributed.hpp"
#include "tally/train.hpp"

using namespace tally;

namespace {

struct Fault {
    int rank = -1;
    long event = 0;
    std::string what;
    long microseconds = 0;
};

// Counts the events of this process, and kills or stops this process after the event in `fault`.
class Events {
public:
    Events(const Fault& fault, int rank) : fault_(fault), mine_(fault.rank == rank) {}
    void one() {
        if (!mine_ || ++count_ != fault_.event) return;
        const bool kills = fault_.what == "kill";
        signal(
            SIGALRM, kills ? [](int) { kill(getpid(), SIGKILL); } : [](int) { kill(getpid(), SIGSTOP); });
        if (fault_.microseconds == 0) raise(SIGALRM);
        itimerval timer{};
        timer.it_value = {fault_.microseconds / 1'000'000, fault_.microseconds % 1'000'000};
        setitimer(ITIMER_REAL, &timer, nullptr);
    }

private:
    Fault fault_;
    bool mine_;
    long count_ = 0;
};

void train(ProcessGroup& processes, const std::string& path, std::int64_t updates, std::int64_t round,
           const Fault& fault) {
    Events events(fault, processes.rank());
    const Array<float> x = uniform<float>({48, 6}, -1, 1, {.seed = 1, .stream = 0}).value(),
                       y = uniform<float>({48, 3}, -1, 1, {.seed = 1, .stream = 1}).value();
    Sequential<float> model{Linear<float>(6, 16, {.seed = 1, .number = 0}), Tanh<float>(),
                            Dropout<float>(0.5), Linear<float>(16, 3, {.seed = 1, .number = 1})};
    Adam<float> adam(model.parameters(), {.learning_rate = 0.01});
    DataParallel<float> ranks(processes, {.model = &model});
    Window<float> window(adam, {.sum = Sum::exact, .seed = 3}, &ranks);
    const bool there = processes.rank() == 0 && std::filesystem::exists(path);
    if (processes.all_gather("whether there is a file", there ? "yes" : "no")[0] == "yes")
        ranks.load(path, window);
    while (window.updates() < updates) {
        const std::vector<Items> parts = split(Items::shuffled(48, 5, window.updates()), 4);
        // All processes have equally many micro-batches, and save after the same micro-batch.
        for (std::int64_t k = processes.rank() + processes.size() * window.micro_batches();
             k < std::ssize(parts); k += processes.size()) {
            events.one();
            const Items& items = parts[static_cast<std::size_t>(k)];
            ranks.begin_at(4 * k - window.items());
            ForwardPass& pass = window.begin_micro_batch(items.count());
            window.add(mse(model(constant(rows(x, items)), pass), constant(rows(y, items))));
            events.one();
            if (window.micro_batches() % round != 0 || k + processes.size() >= std::ssize(parts)) continue;
            ranks.save(path, window);
            events.one();
        }
        window.finish();
        events.one();
        ranks.save(path, window);
        events.one();
    }
    std::string sums;
    for (const Tensor& each : adam.parameters()) sums += " " + std::to_string(detail::checksum(each.value()));
    std::cout << "rank " + std::to_string(processes.rank()) + " of " + std::to_string(processes.size()) +
                     " has" + sums + "\n"
              << std::flush;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    Fault fault;
    if (words.size() > 4) fault = {std::stoi(words[4]), std::stol(words[5]), words[6], std::stol(words[7])};
    ProcessGroup processes({.timeout = words.size() > 3 ? std::stod(words[3]) : 8});
    try {
        train(processes, words.at(0), std::stoll(words.at(1)), std::stoll(words.at(2)), fault);
    } catch (const Error& error) {
        std::cout << std::string(error.what()) + "\n" << std::flush;
        return 1;
    }
} catch (const Error& error) {
    std::cout << error.what() << "\n";
    return 1;
}
