// One Processes for the whole program, which ends when the program does; and where it computes.
#include "processes/world.hpp"

#include "here.hpp"

namespace tally::test {

Device here() { return Device::cpu; }

Processes& world() {
    static Processes processes({.patience = 60});
    return processes;
}

}  // namespace tally::test
