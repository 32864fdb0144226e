// Compares random programs of 1 to 40 operations with an independent evaluator, finite differences and
// LibTorch. A run that moves operands or uses checkpoints must give the same bits as the plain run.
//
//     TALLY_PROGRAMS=200000 TALLY_PROGRAM_SEED=7 test_programs      a long run (see programs/total)
//     TALLY_PROGRAM=12345 test_programs                             one program by its seed
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "catch.hpp"
#include "programs/check.hpp"
#include "programs/generator.hpp"
#include "programs/outcome.hpp"

using namespace programs;

namespace {

constexpr std::uint64_t parts = 4;
#ifdef NDEBUG
constexpr std::uint64_t programs_by_default = 50000;  // these programs take a minute on one core
#else
constexpr std::uint64_t programs_by_default = 4000;  // for builds with assertions or sanitizers
#endif

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* const text = std::getenv(name);
    return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

void count(const Program& program, Counts& counts) {
    ++counts.programs;
    counts.wide += program.wide;
    counts.special += program.special;
    counts.checkpointed += !program.blocks.empty();
    bool nested = false;
    for (std::size_t b = 1; b < program.blocks.size(); ++b)
        nested = nested || program.blocks[b].from < program.blocks[b - 1].to;
    counts.nested += nested;
    int backwards = 0;
    for (const Step& step : program.steps) {
        ++counts.by_operation[static_cast<std::size_t>(step.op)];
        counts.operations += !is_leaf(step.op) && !is_act(step.op);
        counts.requests += is_act(step.op);
        backwards += step.op == Op::backward;
    }
    counts.several += backwards > 1;
}

bool agrees(std::uint64_t seed, bool with_peer, Counts& counts) {
    INFO("TALLY_PROGRAM=" << seed);  // printed if the program ends with a signal
    const Program program = draw(seed);
    count(program, counts);
    const std::string difference = check(program, with_peer, counts);
    if (difference.empty()) return true;
    ++counts.failures;
    if (counts.failures > 3) {
        std::cout << "TALLY_PROGRAM=" << seed << ": " << difference << std::endl;
        return false;
    }
    const Program small = shrunk(program, difference);
    Counts unused;
    std::cout << "TALLY_PROGRAM=" << seed << ": " << difference << "\nsmaller: " << check(small, true, unused)
              << '\n'
              << to_string(small) << std::endl;
    return false;
}

void run(std::uint64_t part) {
    if (const std::uint64_t one = from_environment("TALLY_PROGRAM", 0)) {
        Counts counts;
        if (part == 0) {
            std::cout << to_string(draw(one));
            CHECK(agrees(one, true, counts));
        }
        return;
    }
    const std::uint64_t seed = from_environment("TALLY_PROGRAM_SEED", 1);
    const std::uint64_t programs = from_environment("TALLY_PROGRAMS", programs_by_default);
    const auto started = std::chrono::steady_clock::now();
    Counts counts;
    Rng rng(seed);
    const std::uint64_t start = rng.bits() >> 1;  // the seeds of a run are consecutive
    for (std::uint64_t i = part; i < programs; i += parts)
        agrees(start + i, i / parts % 2 == 0, counts);  // every second program, because LibTorch is slow
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    std::cout << "part " << part + 1 << " of " << parts << ", TALLY_PROGRAM_SEED=" << seed
              << " TALLY_PROGRAMS=" << programs << '\n'
              << summary(counts) << "seconds " << took.count() << '\n'
              << std::endl;
    CHECK(counts.failures == 0);
}

}  // namespace

TEST_CASE("random programs: tally agrees with all independent checks, part 1 of 4", "[alone]") { run(0); }
TEST_CASE("random programs: tally agrees with all independent checks, part 2 of 4", "[alone]") { run(1); }
TEST_CASE("random programs: tally agrees with all independent checks, part 3 of 4", "[alone]") { run(2); }
TEST_CASE("random programs: tally agrees with all independent checks, part 4 of 4", "[alone]") { run(3); }

TEST_CASE("random programs: LibTorch is one of the independent checks", "[alone]") {
    if (!peer_is_there()) TALLY_SKIP("LibTorch is not installed (Debian: libtorch-dev)");
    Counts counts;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) CHECK(check(draw(seed), true, counts) == "");
    CHECK(counts.with_peer >= 15);
}
