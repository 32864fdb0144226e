// Each error of the backward check names the operation, the broken rule and the remedy.
#include "tally/autograd/backward_check.hpp"

namespace tally::backward_check {

namespace {
std::string subject(const char* op) { return std::string("[check] the backward function of '") + op + "' "; }
std::string elements_of(std::size_t input, std::size_t elements) {
    return std::to_string(elements) + (elements == 1 ? " element" : " elements") +
           " of the gradient of input " + std::to_string(input);
}
}  // namespace

void fail_written(const char* op, const std::string& description) {
    throw Error(std::string("[check] '") + op + "' saved an array of " + description +
                " for backward(), and an old pointer from writable() or data() changed the array since; call "
                "writable() before each write");
}

void fail_given(const char* op, std::size_t which) {
    throw Error(subject(op) + "changed " + (which == 0 ? "dy" : "saved value " + std::to_string(which - 1)) +
                ", which is read-only; change a copy through writable()");
}

void fail_nothing(const char* op, std::size_t input) {
    throw Error(subject(op) + "called into() for input " + std::to_string(input) +
                " and wrote nothing; call into() only right before a write");
}

void fail_unset(const char* op, std::size_t input, std::size_t elements) {
    throw Error(subject(op) + "did not set " + elements_of(input, elements) +
                ", although into() returned Write::set; assign every element");
}

void fail_unadded(const char* op, std::size_t input, std::size_t elements) {
    throw Error(subject(op) + "assigned " + elements_of(input, elements) +
                ", although into() returned Write::add; follow `how`, or use add()");
}

}  // namespace tally::backward_check
