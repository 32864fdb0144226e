// Tests that an Error is thrown if a thread uses a graph that a different thread has recorded.
#include <atomic>
#include <cmath>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/array/array.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/loss.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/sgd_step.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/base/random.hpp"
#include "tally/checkpoint/checkpoint.hpp"
#include "tally/tools/check_rules.hpp"

using namespace tally;
using namespace tally::test;

namespace {

template <class F> std::string elsewhere(F f) {
    std::string message;
    std::thread([&] { message = message_of(f); }).join();
    return message;
}

}  // namespace

TEST_CASE("invariant 11: a graph used from another thread throws Error with both threads") {
    const Scalar x = parameter(3.0);
    const Scalar y = x * x;
    const std::string here = std::to_string(detail::this_thread_id());
    const auto expected = [&](const std::string& what, const std::string& op) {
        return "[" + what + "] '" + op + "' was recorded in thread " + here + " and is used in thread ";
    };
    CHECK_THAT(elsewhere([&] { y.backward(); }),
               contains(expected("backward", "mul")) && contains("; a graph belongs to one thread"));
    CHECK_THAT(elsewhere([&] { grad(y, {x}); }), contains(expected("copy", "parameter")));
    CHECK_THAT(elsewhere([&] { (void)(x * 2); }), contains(expected("copy", "parameter")));
    CHECK_THAT(elsewhere([&] { (void)(parameter(1.0) + x); }), contains(expected("copy", "parameter")));
    y.backward();  // backward() still works in the recording thread
    CHECK(x.grad() == 6);
    const Tensor w = parameter({1.0f, 2.0f});
    CHECK_THAT(elsewhere([&] { concat<float>({w, w}); }), contains(expected("copy", "parameter")));
}

TEST_CASE("threads: record and run their own graphs at the same time") {
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
            left[t] = Node::live_count();
        });
    }
    for (std::thread& thread : running) thread.join();
    for (std::size_t t = 0; t < gradients.size(); ++t) {
        CHECK(gradients[t] == 200.0 * 4 * static_cast<double>(t));
        CHECK(left[t] == 0);
    }
}

TEST_CASE("NoGrad: affects only its own thread") {
    const NoGrad off;
    bool recorded = false;
    std::thread([&] { recorded = (parameter(1.0) * 2).requires_grad(); }).join();
    CHECK(recorded);
    CHECK_FALSE((parameter(1.0) * 2).requires_grad());
}

namespace {

// Trains on rows of `data` and returns the weights. Several threads share `data`, so `data` must not change.
std::vector<float> trained(const Array<float>& data, const Array<std::int32_t>& labels, std::uint64_t seed) {
    const Tensor w = parameter(randn<float>({8, 4}, {.seed = seed, .stream = 1}).value());
    for (int step = 0; step < 300; ++step) {
        const std::int64_t from = step * 8 % 504;
        const Tensor x = constant(data.slice_rows(from, from + 8));
        const Array<float> whole = data;
        auto loss = cross_entropy(matmul(x * constant(whole.slice_rows(from, from + 8)), w),
                                  labels.slice_rows(from, from + 8));
        w.zero_grad();
        loss.mean().backward();
        sgd_step({w}, 0.1);
    }
    return w.value().to_vector();
}

}  // namespace

TEST_CASE("threads: trainings on one shared data set have the bits of one thread") {
    const Array<float> data = randn<float>({512, 8}, {.seed = 1, .stream = 1}).value();
    std::vector<std::int32_t> classes(512);
    for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>(i % 4);
    const Array<std::int32_t> labels({512}, classes);
    const std::vector<float> before = data.to_vector();
    constexpr std::size_t count = 4;
    std::vector<std::vector<float>> alone, together(count);
    for (std::size_t t = 0; t < count; ++t) alone.push_back(trained(data, labels, t));
    std::vector<std::thread> running;
    for (std::size_t t = 0; t < count; ++t)
        running.emplace_back([&, t] { together[t] = trained(data, labels, t); });
    for (std::thread& thread : running) thread.join();
    CHECK(together == alone);
    CHECK(data.to_vector() == before);
    CHECK(memory::detail::ref_count(data.storage()) == 1);
    CHECK(memory::detail::memory_class(data.storage()) == MemoryClass::temporary);
}

TEST_CASE("Array: the reference count stays correct when threads copy and drop one array at the same time") {
    const std::size_t before = memory::in_use();
    {
        Array<float> data = Array<float>::full({1000, 4}, 1.f);
        std::atomic<int> waiting{4};
        std::vector<std::thread> running;
        for (int t = 0; t < 4; ++t)
            running.emplace_back([&] {
                --waiting;
                while (waiting > 0) std::this_thread::yield();  // lets all threads start together
                for (int i = 0; i < 20'000; ++i) {
                    const Array<float> rows = data.slice_rows(i % 900, i % 900 + 4);
                    const detail::Saved<Array<float>> saved(&rows);
                    const Array<float> copy = rows;
                }
                for (int i = 0; i < 500'000; ++i)
                    const Array<float> copy = data;  // the loop takes longer than one time slice of a thread
            });
        for (std::thread& thread : running) thread.join();
        CHECK(memory::detail::ref_count(data.storage()) == 1);
        data.writable()[0] = 7;  // the other owners are gone, so the write is in place
        CHECK(data.storage()->version == 1);
    }
    CHECK(memory::in_use() == before);
}

TEST_CASE("Array: arrays passed between threads are counted and freed") {
    const std::size_t before = memory::in_use();
    std::mutex guard;
    std::deque<Array<float>> mail;
    std::atomic<bool> finite{true};
    for (int round = 0; round < 3; ++round) {
        std::vector<std::thread> running;
        for (std::uint64_t t = 0; t < 4; ++t)
            running.emplace_back([&, t] {
                for (std::uint64_t i = 0; i < 30; ++i) {
                    const Tensor w = parameter(randn<float>({8, 8}, {.seed = t, .stream = i}).value());
                    const Tensor x = randn<float>({4, 8}, {.seed = t, .stream = i + 1});
                    Tensor y = sum(tanh(matmul(x, w)));
                    if (i % 3 == 0)
                        y = sum(checkpoint([&](const Tensor& h) { return tanh(matmul(h, w)); }, x));
                    y.backward();
                    Array<float> g = w.grad();  // g and the parameter share the buffer
                    const std::lock_guard lock(guard);
                    mail.push_back(std::move(g));
                    if (mail.size() > 10) {
                        const Array<float> got = std::move(mail.front());
                        mail.pop_front();
                        for (const float each : got.span()) finite = finite && std::isfinite(each);
                    }
                    if (i % 7 == 0) memory::drop_cache();
                }
            });
        for (std::thread& thread : running) thread.join();
    }
    CHECK(finite);
    auto result = std::async(std::launch::async, [data = Array<float>::full({100}, 2.f)]() mutable {
        data.writable()[0] = 1;  // this thread is the only owner
        return data;
    });
    CHECK(result.get().to_vector()[0] == 1);
    mail.clear();
    CHECK(memory::in_use() == before);
}

TEST_CASE("Array: a copy recorded in another thread keeps its values when the parameter is stepped") {
    const Tensor64 w = parameter<double>({3, 4});
    const Array<double> snapshot = w.value();
    std::promise<void> recorded, stepped;
    std::vector<double> found;
    std::string message;
    std::thread other([&] {
        const Tensor64 x = parameter<double>({1, 2});
        const Tensor64 y = sum(x * constant(snapshot));
        recorded.set_value();
        stepped.get_future().wait();
        message = message_of([&] { y.backward(); });
        if (x.has_grad()) found = x.grad().to_vector();
    });
    recorded.get_future().wait();
    w.modify_value([](Array<double>& value) { value.writable()[0] = 30; });
    stepped.set_value();
    other.join();
    CHECK(message == "no error");
    CHECK(found == std::vector<double>{3, 4});
}

TEST_CASE("CheckRules: gives no false alarm when two threads save one array") {
    const Array<double> data = randn<double>({64}, {.seed = 7, .stream = 1}).value();
    std::atomic<int> alarms{0};
    const auto work = [&] {
        const CheckRules check;
        for (int i = 0; i < 200; ++i) {
            const Tensor64 x = parameter(data.clone());
            if (message_of([&] { sum(x * constant(data)).backward(); }) != "no error") ++alarms;
        }
    };
    std::thread first(work), second(work);
    first.join(), second.join();
    CHECK(alarms == 0);
}
