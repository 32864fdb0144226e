// Defines main() of every Catch2 test program. The exit status is 4 if all test cases were skipped or if the
// device is missing. With TALLY_REQUIRE_GPU=1, a missing device gives the status 1. Test cases must restore
// the global state that they change.
#if !__has_include(<catch2/catch_session.hpp>)
#define CATCH_CONFIG_RUNNER
#else
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#endif
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "catch.hpp"
#include "surroundings.hpp"

namespace {

#if __has_include(<catch2/catch_session.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

// Catch2 v2 stores the test case as a reference, and Catch2 v3 stores a pointer.
[[maybe_unused]] const Catch::TestCaseInfo& info(const Catch::TestCaseInfo& test) { return test; }
[[maybe_unused]] const Catch::TestCaseInfo& info(const Catch::TestCaseInfo* test) { return *test; }

constexpr int skipped_code = 4;  // as in Catch2 v3

std::size_t finished_tests = 0, careless_tests = 0;

bool is_set(const char* variable) {
    const char* const value = std::getenv(variable);
    return value != nullptr && std::string_view(value) == "1";
}

// A Catch2 listener cannot make a test case fail. The listener prints the error, and main() returns 1.
class WatchTests : public Listener {
public:
    using Listener::Listener;

    void testCaseStarting(const Catch::TestCaseInfo&) override {
        if (tally::test::before_each_test) tally::test::before_each_test();
        found_ = tally::test::surroundings();
        skipped_ = tally::test::skipped_tests;
    }

    void testCaseEnded(const Catch::TestCaseStats& stats) override {
        ++finished_tests;
        const Catch::TestCaseInfo& test = info(stats.testInfo);
        const auto complain = [&](const std::string& of) {
            std::cerr << test.lineInfo << ": \"" << test.name << "\" " << of << '\n';
            ++careless_tests;
        };
        if (tally::test::after_each_test)
            if (const std::string words = tally::test::after_each_test(test.name, test.tagsAsString());
                !words.empty())
                complain(words);
        for (const auto& [what, now] : tally::test::surroundings())
            if (now != found_[what])
                complain("leaves " + what + " at " + now + "; before, it was " + found_[what]);
        if (tally::test::skipped_tests != skipped_ &&
            test.tagsAsString().find("[alone]") == std::string::npos)
            complain("was skipped, which ctest cannot tell unless it is tagged [alone]");
    }

private:
    tally::test::Surroundings found_;
    int skipped_ = 0;
};

}  // namespace

std::string (*tally::test::why_not)() = nullptr;
void (*tally::test::before_each_test)() = nullptr;
std::string (*tally::test::after_each_test)(const std::string&, const std::string&) = nullptr;

CATCH_REGISTER_LISTENER(WatchTests)

int main(int argc, char** argv) {
    const bool lists =
        std::any_of(argv, argv + argc, [](std::string_view word) { return word.starts_with("--list"); });
    if (tally::test::why_not != nullptr && !lists)
        if (const std::string why = tally::test::why_not(); !why.empty()) {
            const bool required = is_set("TALLY_REQUIRE_GPU");
            std::cerr << (required ? "failed, as TALLY_REQUIRE_GPU=1: " : "skipped: ") << why << '\n';
            return required ? 1 : skipped_code;
        }
    const int result = Catch::Session().run(argc, argv);
    if (finished_tests == 0 && !lists) {
        std::cerr << "no test was found by this name, or in this file\n";
        return 1;
    }
    // Catch2 returns the number of failures, but the exit status 4 must mean that tests were skipped.
    if (result != 0 || careless_tests != 0) return 1;
    const auto skipped = static_cast<std::size_t>(tally::test::skipped_tests);
    return skipped > 0 && skipped == finished_tests ? skipped_code : 0;
}
