// Tests weights files that a model with tied weights must not load.
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/io/safetensors.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/module.hpp"

namespace tally::test {
namespace {

struct Two : Module<double> {
    Tensor64 a = parameter({1.0, 2.0}), b = parameter({3.0, 4.0});
    void list(Members& members) override {
        members.parameter("a", a);
        members.parameter("b", b);
    }
};

}  // namespace

TEST_CASE("load_weights: two different values for tied weights throw an Error") {
    const Folder folder;
    Two untied, tied;
    tied.b = tied.a;
    untied.save_weights(folder / "untied", WeightOrder::tally);
    CHECK_THROWS_WITH(tied.load_weights(folder / "untied"), contains("different numbers for 'a' and 'b'"));
    CHECK(tied.a.value().to_vector() == std::vector<double>{1, 2});
    tied.save_weights(folder / "tied", WeightOrder::tally);
    tied.load_weights(folder / "tied");
}

}  // namespace tally::test
