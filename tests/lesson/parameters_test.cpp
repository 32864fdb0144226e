// Tests the accepted and the rejected values of a lesson's parameters, and sentences that quote a value.
#include "course/kit/parameters.hpp"

#include <algorithm>
#include <stdexcept>

#include "catch.hpp"
#include "course/kit/flags.hpp"
#include "course/kit/prediction.hpp"
#include "course/kit/wording.hpp"

using namespace tally::lesson;

namespace {

using Texts = std::map<std::string, std::string>;

const std::vector<LessonParameter> some{one_of("micro", "equal ones", 3, {1, 2, 3, 6}),
                                        real_number("rate", "how far", 0.1, 0.01, 1),
                                        whole_number("steps", "updates", 5, 1, 50)};

std::string error_of(const Texts& given, const std::vector<LessonParameter>& parameters = some) {
    try {
        settings_of(parameters, given);
    } catch (const std::invalid_argument& fault) {
        return fault.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("settings_of: a parameter without a flag has its default") {
    const Settings settings = settings_of(some, {{"micro", "6"}, {"rate", "2.5e-1"}});
    CHECK(settings.at("micro") == std::vector<double>{6});
    CHECK(settings.at("rate") == std::vector<double>{0.25});
    CHECK(settings.at("steps") == std::vector<double>{5});
}

TEST_CASE("settings_of: a value out of range is rejected with the range") {
    for (const char* text : {"0", "4", "-1", "+3", "3.0", "three", "", "nan", "3,3", "0x3", " 3"})
        CHECK(error_of({{"micro", text}}).find("it must be 1, 2, 3 or 6") != std::string::npos);
    for (const char* text : {"nan", "inf", "0", "1.5", "-0.1", "1e999", "0.1.2", "e", "0x1p-2"})
        CHECK(error_of({{"rate", text}}).find("it must be a number from 0.01 to 1") != std::string::npos);
    CHECK(error_of({{"steps", "51"}}) == "--steps 51: it must be a whole number from 1 to 50");
}

TEST_CASE("several: each number must be in the range") {
    const std::vector<LessonParameter> abc{several("values", "a, b and c", {2, -3, 11}, -12, 12)};
    CHECK(settings_of(abc, {}).at("values") == std::vector<double>{2, -3, 11});
    CHECK(settings_of(abc, {{"values", "-12,0,12"}}).at("values") == std::vector<double>{-12, 0, 12});
    for (const char* text : {"1,2", "1,2,3,4", "1,2,13", "-13,0,0", "1,,2", "1,2,", "1,2,3,", "1.5,2,3",
                             "--1,2,3", "1-,2,3", ""})
        CHECK(error_of({{"values", text}}, abc)
                  .find("it must be 3 whole numbers from -12 to 12, with commas") != std::string::npos);
}

TEST_CASE("settings_of: an undeclared parameter is rejected with a list of the declared ones") {
    CHECK(error_of({{"items", "3"}}, {some[1]}) ==
          "--items: this lesson has no such parameter; it has --rate (a number from 0.01 to 1), and --seed");
    CHECK(error_of({{"items", "3"}}, {}) == "--items: this lesson has no such parameter; it has only --seed");
    CHECK_THROWS_AS(settings_of({whole_number("nothing", "no flag", 1, 0, 2)}, {}), std::logic_error);
}

TEST_CASE("repeat_flags and arguments: contain the settings and no default values") {
    Flags flags;
    flags.settings = {{"micro", "6"}, {"rate", "0.2"}};
    flags.seed = 7;
    CHECK(repeat_flags(flags) == " --micro 6 --rate 0.2 --seed 7");
    flags.settings["values"] = "-1,2";  // after a blank, -1,2 would be parsed as a flag
    CHECK(repeat_flags(flags) == " --micro 6 --rate 0.2 --values=-1,2 --seed 7");
    CHECK(arguments(flags) ==
          std::vector<std::string>{"--micro=6", "--rate=0.2", "--values=-1,2", "--seed=7"});
}

TEST_CASE("say: fills each gap with a value") {
    CHECK(say("{} of {} rows, {} times", "micro-batches", 6, 0.1 * 3) ==
          "micro-batches of 6 rows, 0.3 times");
    CHECK(list_of({"1/6", "1/3", "1/2"}, "or") == "1/6, 1/3 or 1/2");
    CHECK(list_of({"6/6"}, "or") == "6/6");
    CHECK_THROWS_AS(say("{} and {}", 1), std::logic_error);
    CHECK_THROWS_AS(say("nothing", 1), std::logic_error);
}
