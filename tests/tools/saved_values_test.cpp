// Tests that SavedValues counts the same bytes that the memory report counts as saved.
#include "tally/tools/saved_values.hpp"

#include <algorithm>
#include <string>

#include "autograd/random_graph.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/checkpoint/revolve.hpp"
#include "tally/tools/scope_name.hpp"

using namespace tally;
using namespace tally::test;

namespace {

Tensor weights(const Shape& shape = {8, 16}) { return parameter(Array<float>::full(shape, 0.5f)); }

std::size_t saved() { return in_use(MemoryClass::saved); }

// At each event of a forward or backward pass, compares SavedValues with the memory report.
struct Compare : Observer {
    Compare(const SavedValues& all, std::size_t at_first) : kept(all), before(at_first) {}
    void on_forward(const ForwardEvent&) override { compare(); }
    void after_backward(const Node&) override { compare(); }
    void compare() {
        ++compared;
        if (kept.bytes() != saved() - before) ++wrong;
    }
    const SavedValues& kept;
    std::size_t before;
    int compared = 0, wrong = 0;
};

}  // namespace

TEST_CASE("SavedValues: its bytes are the growth of saved memory at every step of random graphs") {
    const std::uint64_t seed = GENERATE(range(1u, 101u));
    CAPTURE(seed);
    Random random(seed);
    RandomGraph graph(random, random.whole(1, 9));
    if (random.coin()) graph.grow(random.whole(1, 10));  // saves values before `kept` exists
    const std::size_t before = saved();
    const SavedValues kept;
    Compare compare(kept, before);
    const Observer::Scope scope(compare);
    graph.grow(random.whole(1, 25));
    CHECK(kept.bytes() == saved() - before);
    const Tensor loss = graph.loss();
    graph.drop_results();
    CHECK(kept.bytes() == saved() - before);
    if (before == 0) {  // otherwise the backward pass also frees values that were saved before
        loss.backward();
        CHECK(saved() == 0);
        CHECK(kept.bytes() == 0);
        CHECK(kept.entries().empty());
        graph.grow(10);
        CHECK(kept.bytes() == saved());
    }
    CHECK(compare.compared > 0);
    CHECK(compare.wrong == 0);
}

TEST_CASE("SavedValues: each entry has the operation, the bytes, the reason and the place") {
    const Tensor w = weights();
    const SavedValues kept;
    Tensor y;
    int line = 0;
    {
        const ScopeName here("middle");
        line = __LINE__ - 1;
        y = tanh((w + 1) * w);
    }
    y = exp(std::move(y));
    const std::vector<SavedValues::Entry>& all = kept.entries();
    REQUIRE(all.size() == 4);
    CHECK(all[0].op == "mul");
    CHECK(all[0].why == SavedValues::Why::operand);
    CHECK(all[0].counts);
    CHECK(all[0].bytes == 512);
    CHECK(all[0].shape == Shape{8, 16});
    CHECK(all[0].where == "saved_values_test.cpp:" + std::to_string(line) + " middle");
    CHECK(all[1].why == SavedValues::Why::parameter);
    CHECK(!all[1].counts);
    CHECK(all[2].op == "tanh");
    CHECK(all[2].why == SavedValues::Why::output);
    CHECK(all[3].op == "exp");
    CHECK(all[3].why == SavedValues::Why::output);
    CHECK(all[3].where.empty());
    CHECK(kept.bytes() == 3 * 512);
    CHECK(kept.buffers() == 3);
    const std::string place = "saved_values_test.cpp:" + std::to_string(line) + " middle\n";
    CHECK(to_string(kept) ==
          "   operation  keeps    bytes  why                                 where\n"
          "1  mul        (8, 16)  512 B  an operand, or computed inside      " +
              place + "2  mul        (8, 16)      -  a parameter, which is there anyway  " + place +
              "3  tanh       (8, 16)  512 B  its own output                      " + place +
              "4  exp        (8, 16)  512 B  its own output\n"
              "saved for backward: 1.5 KiB in 3 buffers\n");
}

TEST_CASE("SavedValues: a buffer that several backward functions save counts once") {
    const Tensor w = weights();
    const std::size_t before = saved();
    const SavedValues kept;
    const Tensor x = tanh(w), y = x * x, z = relu(reshape(x, {16, 8}));
    REQUIRE(kept.entries().size() == 4);
    CHECK(kept.entries()[3].op == "relu");
    CHECK(kept.bytes() == 2 * 512);
    CHECK(kept.bytes() == saved() - before);
    CHECK_THAT(to_string(kept), contains("same buffer as line 1, not added"));
    CHECK_THAT(to_string(kept), contains("saved for backward: 1.0 KiB in 2 buffers\n"));
    sum(y).backward();  // x is now saved only by the backward functions of y and tanh
    CHECK(kept.entries().size() == 1);
    CHECK(kept.bytes() == 512);
    CHECK(kept.bytes() == saved() - before);
}

TEST_CASE("SavedValues: values that were saved earlier are listed and not counted") {
    const Tensor w = weights();
    const Tensor x = tanh(w);
    const std::size_t before = saved();
    const SavedValues kept;
    const Tensor y = x * 1.0f * x;
    CHECK(kept.bytes() == saved() - before);
    CHECK_THAT(to_string(kept), contains("; saved before this list began"));
}

TEST_CASE("SavedValues: a destroyed graph is not listed when its buffers are saved again", "[alone]") {
    if (!pool::enabled) TALLY_SKIP("buffers are not used again here");
    const Tensor w = weights();
    const SavedValues kept;
    tanh(w);
    const Tensor y = tanh(w);
    CHECK(kept.entries().size() == 1);
    CHECK(kept.bytes() == saved());
}

TEST_CASE("SavedValues: snapshots of Revolve belong to no operation and are not listed") {
    const Tensor x = constant(Array<float>::full({8, 16}, 0.5f)), w = weights();
    const Chain<Array<float>> layers(9, [&](const Tensor& h) { return tanh(h + w); });
    const Revolve<Array<float>> chain(layers, 3);
    const std::size_t before = saved();
    const SavedValues kept;
    const Tensor y = chain(x);
    REQUIRE(chain.count().snapshots == 3);
    CHECK(kept.bytes() == 512);                         // bytes saved by the last step
    CHECK(saved() - before == kept.bytes() + 3 * 512);  // one snapshot is x, the first step's input
}

TEST_CASE("SavedValues: saved scalars are listed and count 0 bytes") {
    const Scalar a = parameter(2.0), b = parameter(3.0);
    const SavedValues kept;
    const Scalar c = a * b;
    REQUIRE(kept.entries().size() == 2);
    CHECK(kept.entries()[0].why == SavedValues::Why::number);
    CHECK(kept.bytes() == 0);
    CHECK_THAT(to_string(kept), contains("a number, in the graph's node"));
    CHECK_THAT(to_string(kept), contains("0 B in 0 buffers"));
}
