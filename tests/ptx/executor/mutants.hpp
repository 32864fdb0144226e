// `Mutants` are kernels with one changed instruction each. Each launch also runs with these kernels, so one run of the tests
// finds out which changes the executor reports, and which ones change a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "machine.hpp"
#include "program.hpp"

namespace tally::ptx {

struct Mutant {
    const char* kind;           // "barrier", "shuffle", "mask", "shared", "predicate"
    std::size_t line;           // in the PTX
    std::string before, after;  // of the line

    std::unique_ptr<const Kernel> kernel;  // made when the kernel first runs
    std::size_t runs = 0;                  // that execute the line
    bool is_found = false;                 // the executor reports it
    bool is_stopped = false;               // by a finding, so its results say nothing
    bool changes_result = false;
};

// Returns the changes of a kernel: a barrier is removed, a shuffle reads another lane or has another mask, an access to shared
// memory moves by one element, or the guard of a branch is inverted.
std::vector<Mutant> mutants_of(const Program::Body& kernel);

struct Launch {
    const Kernel& kernel;
    unsigned blocks, threads;
    const std::vector<std::byte>& parameters;
    const std::vector<Write>& written;  // by the unchanged kernel
    std::uint64_t steps;
};

using Values = std::vector<std::uint64_t>;

class Mutants {
public:
    // `chosen` is "all", or "30:7" for 30 mutants, chosen with the seed 7. Throws Unreadable.
    Mutants(Program& program, const std::string& chosen);

    // Runs a launch that has just run without changes again, with each mutant whose changed instruction was executed.
    void judge(const Launch& launch, const std::vector<bool>& executed);
    bool has(const Kernel& kernel) const { return alive_.contains(kernel.name); }
    void write_report(const std::string& file) const;

private:
    struct Other {  // what a mutant has written elsewhere than the unchanged kernel
        Mutant* mutant;
        std::vector<Write> places;
        Values values;
    };
    using Others = std::vector<Other>;

    void run(Mutant& mutant, const Launch& launch, unsigned blocks, const char* order, const Values& results,
             const std::unordered_set<std::uint64_t>& places, Others& others);
    bool has_ended(const Mutant& mutant) const;

    Program& program_;
    bool all_ =
        false;  // each mutant runs until it has a finding and a changed result, or a finding has stopped it
    std::map<std::string, std::vector<Mutant>> alive_, ended_;  // by the name of the kernel
    std::vector<std::uint64_t> registers_;
};

}  // namespace tally::ptx
