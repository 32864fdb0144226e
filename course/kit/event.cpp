// How a lesson ended, in a word.
#include "tally/lesson/event.hpp"

namespace tally::lesson {

const char* to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::ok:
            return "ok";
        case Outcome::fail:
            return "FAIL";
        case Outcome::skip:
            return "skip";
        case Outcome::quit:
            break;
    }
    return "quit";
}

}  // namespace tally::lesson
