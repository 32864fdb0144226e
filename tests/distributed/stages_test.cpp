// Tests that PipelineParallel clips by the norm of all gradients, and updates either all stages or no stage.
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "distributed/world.hpp"
#include "tally/core.hpp"
#include "tally/train.hpp"

namespace tally::test {

namespace {

using Numbers = Array<double>;
using V = Var<Numbers>;

bool last() { return me() + 1 == ranks(); }

// Generates a matrix for each stage, and micro-batches. All processes generate equal numbers.
struct Chain {
    std::vector<Numbers> values, inputs;
    std::vector<std::size_t> begin;  // index of each process's first stage, and then the number of stages
    Window<double>::Options options;

    explicit Chain(Random& r) {
        begin.push_back(0);
        for (std::size_t rank = 0; rank < ranks(); ++rank)
            begin.push_back(begin.back() + static_cast<std::size_t>(r.whole(1, 2)));
        const std::int64_t width = r.whole(1, 5);
        while (values.size() < begin.back()) values.push_back(r.array<double>({width, width}));
        for (std::int64_t m = r.whole(1, 4); m-- > 0;)
            inputs.push_back(r.array<double>({r.whole(1, 3), width}));
        options.max_norm = r.between(0.01, 1);
    }
    std::vector<V> leaves(std::size_t from, std::size_t to) const {
        std::vector<V> all;
        for (std::size_t i = from; i < to; ++i) all.push_back(parameter(values[i].clone()));
        return all;
    }
    double items() const {
        double sum = 0;
        for (const Numbers& input : inputs) sum += static_cast<double>(input.shape()[0]);
        return sum;
    }
};

struct Part {
    const Chain& chain;
    std::vector<V> leaves;
    Sgd<double> sgd;
    PipelineParallel<double> all;
    Window<double> window;
    Pipe<double> pipe;
    double factor = 1;  // factor of all losses

    explicit Part(const Chain& of)
        : chain(of),
          leaves(chain.leaves(chain.begin[me()], chain.begin[me() + 1])),
          sgd(leaves, {.learning_rate = 0.1}),
          all(world()),
          window(sgd, chain.options, &all),
          pipe(world(), stages()) {}
    std::vector<Pipe<double>::Stage> stages() const {
        std::vector<Pipe<double>::Stage> own;
        for (const V& weight : leaves)
            own.push_back([weight](const V& x, int) { return tanh(matmul(x, weight)); });
        return own;
    }
    void run() {
        pipe.run(
            static_cast<int>(chain.inputs.size()),
            [&](int k) { return chain.inputs[static_cast<std::size_t>(k)]; },
            [&](const V& y, int) { return sum(y * y) * factor; });
    }
};

}  // namespace

TEST_CASE("PipelineParallel: gradients are clipped by the norm of all stages, as on one process") {
    const std::uint64_t seed = common_seed("stages");
    for (std::uint64_t i = 0; i < 60; ++i) {
        Random r(seed + i);
        const Chain chain(r);
        CAPTURE(seed + i, ranks(), *chain.options.max_norm);
        Part part(chain);
        const std::vector<V> leaves = chain.leaves(0, chain.values.size());
        Sgd<double> sgd(leaves, {.learning_rate = 0.1});
        Window<double> window(sgd, chain.options);
        for (int update = 0; update < 3; ++update) {
            part.run();
            part.window.after_backward(chain.items());
            const auto done = part.window.finish();
            for (const Numbers& input : chain.inputs) {
                V h = constant(input);
                for (const V& weight : leaves) h = tanh(matmul(h, weight));
                window.add({sum(h * h), constant(Numbers::full({}, static_cast<double>(input.shape()[0])))});
            }
            const auto alone = window.finish();
            REQUIRE(done.stepped);
            CHECK(std::abs(*done.norm - *alone.norm) <= 1e-12 * *alone.norm);
            CHECK(same_everywhere(Numbers::full({}, *done.norm)));
        }
        for (std::size_t own = 0; own < part.leaves.size(); ++own) {
            const Numbers &mine = part.leaves[own].value(), &theirs = leaves[chain.begin[me()] + own].value();
            for (std::size_t j = 0; j < mine.size(); ++j)
                CHECK(std::abs(mine.data()[j] - theirs.data()[j]) <= 1e-12);
        }
    }
}

TEST_CASE("PipelineParallel: a non-finite gradient in one stage keeps all stages from stepping") {
    Random r(common_seed("infinite stages"));
    for (const bool norm : {true, false})
        for (const NonFinite way : {NonFinite::drop_window, NonFinite::raise}) {
            Chain chain(r);
            if (!norm) chain.options.max_norm = {};
            chain.options.non_finite = way;
            Part part(chain);
            const Numbers before = part.leaves[0].value().clone();
            part.run();
            if (last()) {  // changes the gradient of one stage only
                part.leaves[0].modify_grad([](Numbers& gradient) {
                    gradient.writable()[0] = std::numeric_limits<double>::infinity();
                });
            }
            part.window.after_backward(chain.items());
            if (way == NonFinite::raise) {
                CHECK_THAT(message_of([&] { part.window.finish(); }), contains("nothing was updated"));
                part.window.discard();
            } else {
                CHECK(!part.window.finish().stepped);
            }
            CHECK(same_bits(part.leaves[0].value(), before));
            part.run();
            part.window.after_backward(chain.items());
            CHECK(part.window.finish().stepped);
            CHECK(!same_bits(part.leaves[0].value(), before));
        }
}

TEST_CASE("PipelineParallel: a NaN loss on the last stage keeps all stages from stepping") {
    Random r(common_seed("a NaN loss"));
    const Chain chain = [&r] {
        Chain made(r);
        made.options.non_finite = NonFinite::drop_window;
        return made;
    }();
    Part part(chain);
    const Numbers before = part.leaves[0].value().clone();
    const V nan_loss = constant(Numbers::full({}, std::numeric_limits<double>::quiet_NaN()));
    if (last()) {  // only the loss is NaN, and its gradient is finite
        part.window.add({sum(part.leaves[0]) + nan_loss, constant(Numbers::full({}, chain.items()))});
    } else {
        sum(part.leaves[0]).backward();
        part.window.after_backward(chain.items());
    }
    CHECK(!part.window.finish().stepped);
    CHECK(same_bits(part.leaves[0].value(), before));
}

TEST_CASE("PipelineParallel: windows that differ throw an Error that names the rank, and no stage steps") {
    if (ranks() == 1) return;
    Random r(common_seed("stages that differ"));
    const Chain chain(r);
    const std::string start = "rank " + std::to_string(ranks() - 1) + " has ";
    Chain other = chain;
    if (last()) other.options.max_norm = 17;
    CHECK_THAT(message_of([&] { Part part(other); }),
               contains("[processes] the construction of a pipeline's Window: " + start +
                        "option max_norm 17, rank 0 has "));
    Part part(chain);
    const Numbers before = part.leaves[0].value().clone();
    part.run();
    part.window.after_backward(chain.items() + (last() ? 1 : 0));
    CHECK_THAT(message_of([&] { part.window.finish(); }),
               contains("[processes] finish of the pipeline's window 0: " + start + "a count of "));
    part.window.discard();
    part.run();
    part.window.after_backward(chain.items());
    if (last()) part.sgd.set_learning_rate(0.5);
    CHECK_THAT(message_of([&] { part.window.finish(); }), contains(start + "the learning rate 0.5"));
    part.window.discard();
    part.sgd.set_learning_rate(0.1);
    CHECK(same_bits(part.leaves[0].value(), before));
    part.run();
    part.window.after_backward(chain.items());
    if (last()) memory::detail::fail_allocation(1);
    const std::string error = message_of([&] { part.window.finish(); });
    memory::detail::fail_allocation(0);
    CHECK_THAT(error, last() ? contains("memory") : contains("has failed at finish of window 2"));
    part.window.discard();
    CHECK(same_bits(part.leaves[0].value(), before));
    part.run();
    part.window.after_backward(chain.items());
    CHECK(part.window.finish().stepped);
}

}  // namespace tally::test
