// mpirun starts this program on several processes. Without mpirun, the program runs as a single process.
#include <tally/distributed.hpp>

int main() {
    tally::ProcessGroup processes;
    const tally::Array<float> sum = processes.all_reduce(tally::Array<float>{1, 2, 3});
    return processes.size() == 1 && sum.data()[2] == 3 ? 0 : 1;
}
