// Tests a module that lists itself, and a module that two other modules list.
#include "catch.hpp"
#include "tally/train/module.hpp"

namespace tally::test {
namespace {

struct Part : Module<double> {
    Module<double>* part = nullptr;
    void list(Members& members) override {
        if (part) members.child("part", *part);
    }
};

}  // namespace

TEST_CASE("Module: a module that lists itself, directly or through another, throws an Error") {
    Part self;
    self.part = &self;
    CHECK_THROWS_WITH(self.parameters(),
                      "[module] 'part' contains itself as 'part.part'; list only the parts of "
                      "a module as its children");
    Part outer, inner;
    outer.part = &inner;
    inner.part = &outer;
    CHECK_THROWS_WITH(outer.parameters(),
                      "[module] 'part' contains itself as 'part.part.part'; list only the "
                      "parts of a module as its children");
}

TEST_CASE("Module: a module that two others share is listed under both") {
    struct Pair : Module<double> {
        Part one, two, shared;
        Pair() { one.part = two.part = &shared; }
        void list(Members& members) override {
            members.child("one", one);
            members.child("two", two);
        }
    } pair;
    CHECK(detail::modules(pair).size() == 5);
}

}  // namespace tally::test
