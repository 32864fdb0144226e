// One Processes for the whole program; it ends when the program does.
#include "processes/world.hpp"

namespace tally::test {

Processes& world() {
    static Processes processes({.patience = 60});
    return processes;
}

}  // namespace tally::test
