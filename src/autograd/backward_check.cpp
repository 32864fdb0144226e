// What a rule did that it must not, in words.
#include "tally/autograd/backward_check.hpp"

namespace tally::rule_check {

namespace {
std::string rule_of(const char* op) { return std::string("[check] the rule of '") + op + "' "; }
std::string elements_of(std::size_t input, std::size_t elements) {
    return std::to_string(elements) + (elements == 1 ? " element" : " elements") +
           " of the gradient of input " + std::to_string(input);
}
}  // namespace

void fail_written(const char* op, const std::string& form) {
    throw Error(
        std::string("[check] '") + op + "' keeps an array of " + form +
        " for the way back, and its numbers were changed without a new version: somebody wrote through a "
        "pointer kept from writable(), or through data(); ask writable() each time");
}

void fail_given(const char* op, std::size_t which) {
    throw Error(rule_of(op) + "changed " + (which == 0 ? "dy" : "kept value " + std::to_string(which - 1)) +
                ", which it was given to read; write to a copy's writable()");
}

void fail_nothing(const char* op, std::size_t input) {
    throw Error(rule_of(op) + "asked for the gradient of input " + std::to_string(input) +
                " and wrote nothing; ask into() right before writing, or not at all");
}

void fail_unset(const char* op, std::size_t input, std::size_t elements) {
    throw Error(rule_of(op) + "left " + elements_of(input, elements) +
                " as the memory was, or added to it, where into() said Write::set; write all of it");
}

void fail_unadded(const char* op, std::size_t input, std::size_t elements) {
    throw Error(rule_of(op) + "assigned " + elements_of(input, elements) +
                ", where into() said Write::add; look at `how`, or use give()");
}

}  // namespace tally::rule_check
