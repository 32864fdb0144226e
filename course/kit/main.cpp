// Defines main() of every lesson.
#include <exception>

#include "course/kit/flags.hpp"
#include "course/kit/talk.hpp"

int main(int argc, char** argv) {
    try {
        return tally::lesson::run_registered(argc, argv);
    } catch (const std::exception& error) {
        tally::lesson::print_error("lesson", error.what());
        return 1;
    }
}
