// Tests TrainingState::put() and get().
#include "tally/io/training_state.hpp"

#include "catch.hpp"

namespace tally::test {

TEST_CASE("TrainingState: get() returns the values of put(), and a missing entry is named") {
    TrainingState state;
    state.put("steps", std::int64_t{7});
    state.put("words", std::string("cosine"));
    state.put("w", Array<float>{1, 2});
    CHECK(state.get<std::int64_t>("steps") == 7);
    CHECK(state.get<std::string>("words") == "cosine");
    CHECK(state.get<Array<float>>("w").to_vector() == std::vector<float>{1, 2});
    CHECK(state.has("w"));
    CHECK_FALSE(state.has("v"));
    CHECK_THROWS_WITH(state.put("w", 1.0), "[state] 'w' exists already; use another name");
    CHECK_THROWS_WITH(state.get<double>("lr"), "[state] there is no 'lr'; load a state with this entry");
    CHECK_THROWS_WITH(state.get<double>("steps"),
                      "[state] 'steps' has another type; call get() with its type");
}

}  // namespace tally::test
