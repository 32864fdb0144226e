// This program is for mpirun. If the program is started alone, it is a single process.
#include <tally/distributed.hpp>

int main() {
    tally::ProcessGroup processes;
    const tally::Array<float> sum = processes.all_reduce(tally::Array<float>{1, 2, 3});
    return processes.size() == 1 && sum.data()[2] == 3 ? 0 : 1;
}
