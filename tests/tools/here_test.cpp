// Places in words, and the kinds of things.
#include "tally/tools/here.hpp"

#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace tally;

namespace {

template <class T> struct Outer {
    template <class U> struct Inner {};
};

std::string line(int number) { return "here_test.cpp:" + std::to_string(number); }

}  // namespace

TEST_CASE("a place is the innermost line and all names from the outside") {
    CHECK(Here::place().empty());
    {
        const Here first;
        const int first_line = __LINE__ - 1;
        CHECK(Here::place() == line(first_line));
        {
            const Here second("encoder");
            const int second_line = __LINE__ - 1;
            CHECK(Here::place() == line(second_line) + " encoder");
            {
                const Here part("3 ReLU", detail::nowhere), unnamed("", detail::nowhere);
                CHECK(Here::place() == line(second_line) + " encoder > 3 ReLU");
                std::string elsewhere;
                std::thread([&] { elsewhere = Here::place(); }).join();
                CHECK(elsewhere.empty());
            }
        }
        CHECK(Here::place() == line(first_line));
    }
    CHECK(Here::place().empty());
    const Here part("0 Linear", detail::nowhere);
    CHECK(Here::place() == "0 Linear");
}

TEST_CASE("a kind is a type without what it lies in and what it is made of") {
    struct Local {};
    CHECK(detail::kind_of(typeid(Outer<int>)) == "Outer");
    CHECK(detail::kind_of(typeid(Outer<std::vector<int>>::Inner<float>)) == "Inner");
    CHECK(detail::kind_of(typeid(Local)) == "Local");
    CHECK(detail::kind_of(typeid(detail::SourceLine)) == "SourceLine");
    CHECK(detail::kind_of(typeid(int)) == "int");
}
