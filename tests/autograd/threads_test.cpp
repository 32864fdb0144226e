// A graph belongs to the thread that recorded it; using it elsewhere is an error, and threads have graphs of
// their own.
#include <string>
#include <thread>
#include <vector>

#include "autograd/array.hpp"
#include "autograd/ops/elementwise.hpp"
#include "autograd/ops/reduce.hpp"
#include "autograd/ops/shape.hpp"
#include "autograd/support.hpp"
#include "autograd/tensor.hpp"
#include "catch.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class F>
std::string elsewhere(F f) {
    std::string message;
    std::thread([&] { message = message_of(f); }).join();
    return message;
}

}  // namespace

TEST_CASE("invariant 11: a graph used from another thread is an error that names both") {
    const Scalar x = parameter(3.0);
    const Scalar y = x * x;
    const std::string here = std::to_string(this_thread());
    const auto expected = [&](const std::string& what, const std::string& op) {
        return "[" + what + "] '" + op + "' was recorded in thread " + here + " and is used in thread ";
    };
    CHECK_THAT(elsewhere([&] { y.backward(); }),
               contains(expected("backward", "mul")) && contains("; a graph belongs to one thread"));
    CHECK_THAT(elsewhere([&] { grad(y, {x}); }), contains(expected("grad", "parameter")));
    CHECK_THAT(elsewhere([&] { (void)(x * 2); }), contains(expected("mul_number", "parameter")));
    CHECK_THAT(elsewhere([&] { (void)(parameter(1.0) + x); }), contains(expected("add", "parameter")));
    y.backward();  // unharmed
    CHECK(x.grad() == 6);
    const Tensor w = parameter({1.0f, 2.0f});
    CHECK_THAT(elsewhere([&] { concat<float>({w, w}); }), contains(expected("concat", "parameter")));
}

TEST_CASE("threads record and sweep graphs of their own at the same time") {
    std::vector<double> gradients(4);
    std::vector<std::int64_t> left(4);
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < gradients.size(); ++t) {
        running.emplace_back([&, t] {
            {
                const Tensor64 w = parameter({1.0, 2.0});
                for (int step = 0; step < 200; ++step) sum(w * w * static_cast<double>(t)).backward();
                gradients[t] = w.grad().span()[1];
            }
            left[t] = live_nodes();
        });
    }
    for (std::thread& thread : running) thread.join();
    for (std::size_t t = 0; t < gradients.size(); ++t) {
        CHECK(gradients[t] == 200.0 * 4 * static_cast<double>(t));
        CHECK(left[t] == 0);
    }
}

TEST_CASE("NoGrad is of one thread") {
    const NoGrad off;
    bool recorded = false;
    std::thread([&] { recorded = (parameter(1.0) * 2).wants_grad(); }).join();
    CHECK(recorded);
    CHECK_FALSE((parameter(1.0) * 2).wants_grad());
}
