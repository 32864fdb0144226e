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

void throw_saved_modified(const char* op, const std::string& description) {
    throw Error(std::string("[check] '") + op + "' saved an array of " + description +
                " for backward(), and the array was then changed through an old pointer from writable() or "
                "data(); call writable() before each write");
}

void throw_read_only_modified(const char* op, std::size_t index) {
    throw Error(subject(op) + "changed " + (index == 0 ? "dy" : "saved value " + std::to_string(index - 1)) +
                ", which is read-only; change a copy through writable()");
}

void throw_nothing_written(const char* op, std::size_t input) {
    throw Error(subject(op) + "called into() for input " + std::to_string(input) +
                " and wrote nothing; call into() only right before a write");
}

void throw_not_fully_set(const char* op, std::size_t input, std::size_t elements) {
    throw Error(subject(op) + "did not set " + elements_of(input, elements) +
                ", although into() returned Write::set; assign every element");
}

void throw_assigned_instead_of_added(const char* op, std::size_t input, std::size_t elements) {
    throw Error(subject(op) + "assigned " + elements_of(input, elements) +
                ", although into() returned Write::add; add to dst, as Into::how says, or use add()");
}

}  // namespace tally::backward_check
