// Tests ScopeName::place() and layer_type_name().
#include "tally/tools/scope_name.hpp"

#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace tally;

namespace {

template <class T> struct Outer {
    template <class U> struct Inner {};
};

std::string line(int number) { return "scope_name_test.cpp:" + std::to_string(number); }

}  // namespace

TEST_CASE("ScopeName::place: it is the innermost line and all names, outermost first") {
    CHECK(ScopeName::place().empty());
    {
        const ScopeName first;
        const int first_line = __LINE__ - 1;
        CHECK(ScopeName::place() == line(first_line));
        {
            const ScopeName second("encoder");
            const int second_line = __LINE__ - 1;
            CHECK(ScopeName::place() == line(second_line) + " encoder");
            {
                const ScopeName part("3 ReLU", detail::no_location), unnamed("", detail::no_location);
                CHECK(ScopeName::place() == line(second_line) + " encoder > 3 ReLU");
                std::string elsewhere;
                std::thread([&] { elsewhere = ScopeName::place(); }).join();
                CHECK(elsewhere.empty());
            }
        }
        CHECK(ScopeName::place() == line(first_line));
    }
    CHECK(ScopeName::place().empty());
    const ScopeName part("0 Linear", detail::no_location);
    CHECK(ScopeName::place() == "0 Linear");
}

TEST_CASE("layer_type_name: it is the type without namespaces, enclosing types and template arguments") {
    struct Local {};
    CHECK(detail::layer_type_name(typeid(Outer<int>)) == "Outer");
    CHECK(detail::layer_type_name(typeid(Outer<std::vector<int>>::Inner<float>)) == "Inner");
    CHECK(detail::layer_type_name(typeid(Local)) == "Local");
    CHECK(detail::layer_type_name(typeid(detail::SourceLine)) == "SourceLine");
    CHECK(detail::layer_type_name(typeid(int)) == "int");
}
