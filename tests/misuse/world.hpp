// Defines valid and wrong arguments of the calls that the misuse tests generate, and comparisons of results.
#pragma once

#include <unistd.h>
#include <cmath>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "tally/tally.hpp"
#include "tally/train.hpp"

namespace misuse {

using namespace tally;
using A = Array<float>;
using I = Array<std::int32_t>;

struct World {
    World() {
        state.put("number", 2.0);
        sum(y * y).backward();
    }
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    A array{{2, 3}, {1, 2, 3, 4, 5, 6}};
    Tensor x = parameter(array.clone()), y = parameter(A({2, 3}, {1, 1, 2, 2, 4, 4})),
           z = parameter(A({2, 3}, {1, 1, 2, 2, 4, 4})),
           u = parameter(A({2, 3}, {.1f, .2f, .3f, .4f, .5f, .6f}));
    Tensor square = parameter(A({2, 2}, {1, 2, 3, 4})), w32 = parameter(A({3, 2}, {1, 0, 0, 1, 1, 1})),
           one = parameter({3.f});
    Tensor gain2 = parameter({1.f, 1.f}), bias2 = parameter({0.f, 1.f}), gain3 = parameter({1.f, 1.f, 1.f}),
           bias3 = parameter({0.f, 0.f, 0.f});
    Tensor image = parameter(A({1, 1, 2, 2}, {1, 2, 3, 4})),
           kernel = parameter(A({1, 1, 2, 2}, {1, 1, 1, 1})), bias1 = parameter({1.f});
    I labels{{2}, {0, 2}}, mask{{2, 3}, {1, 0, 1, 0, 1, 0}};
    Array<double> array64{{2}, {3., 4.}}, direction64{{2}, {1., 0.}};
    RunningStatistics<float> running{3};
    RunningStatistics<float>::Batch batch{A({3}, {1, 2, 3}), A({3}, {1, 1, 1}), 4};
    Loss<A> loss = Loss(z * 1);
    Linear<float> linear{3, 2, {.seed = 1}};
    Dropout<float> dropout{0.5, 3};
    BatchNorm<float> norm{3};
    Sequential<float> model{Linear<float>(3, 2, {.seed = 1}), Tanh<float>()};
    Sgd<float> optimizer{{z}, {.learning_rate = 0.1}};
    Adam<float> adam{{z}, {.learning_rate = 0.1}};
    MovingAverage<float> average{{z}, {.decay = 0.5}};
    Window<float> window{optimizer, {}};
    ForwardPass training{.training = true};
    TrainingState state;
    Items items = Items::in_order(4);
    Schedule schedule = Schedule::constant(0.1);
    std::vector<std::int64_t> sizes{1, 1};
    Chain<A> chain{[](Tensor t) { return t * 2; }, [](Tensor t) { return t + 1; }};
    detail::ExactSum<float> exact{{2, 3}};
    std::string file = "a.file";
};

template <class... T> std::vector<Tensor> list(const T&... tensors) { return {tensors...}; }

// ---- mistakes ----

template <class T> Var<T> moved_from(Var<T> x) {
    const Var<T> taken = std::move(x);
    return x;  // returns a moved-from value on purpose
}
inline Array<double> in_double(const A& x) {
    const std::vector<float> from = x.to_vector();
    return Array<double>(x.shape(), std::vector<double>(from.begin(), from.end()));
}
inline Tensor64 in_double(const Tensor& x) { return parameter(in_double(x.value())); }
inline Tensor no_rows(const Tensor& x) {
    std::vector<std::int64_t> extents(x.shape().begin(), x.shape().end());
    if (!extents.empty()) extents[0] = 0;
    return zeros(Shape(std::span<const std::int64_t>(extents)));
}
inline Tensor with_nan(const Tensor& x) {
    A copy = x.value().clone();
    copy.writable()[0] = NAN;
    return parameter(copy);
}

// ---- a result as numbers ----

using Numbers = std::vector<double>;
template <class N>
requires std::is_arithmetic_v<N>
void put(Numbers& to, N x) { to.push_back(static_cast<double>(x)); }
template <class S> void put(Numbers& to, const Array<S>& x) {
    for (S v : x.to_vector()) to.push_back(static_cast<double>(v));
}
template <class T> void put(Numbers& to, const Var<T>& x) { put(to, x.value()); }
template <class T> void put(Numbers& to, const Loss<T>& x) { put(to, x.sum), put(to, x.count); }
inline void put(Numbers& to, const Shape& x) {
    for (auto extent : x) to.push_back(static_cast<double>(extent));
}
inline void put(Numbers& to, const Items& x) {
    for (std::int64_t i = 0; i < x.count(); ++i) put(to, x[i]);
}
inline void put(Numbers& to, const std::string& x) {
    for (char letter : x) to.push_back(letter);
}
template <class S> void put(Numbers& to, const detail::BatchStatistics<S>& x) {
    put(to, x.mean), put(to, x.variance), put(to, x.count);
}
template <class S> void put(Numbers& to, const detail::BatchNormResult<S>& x) { put(to, x.y); }
template <class S> void put(Numbers& to, const detail::WindowResult<S>& x) {
    put(to, x.stepped), put(to, x.count);
}
inline void put(Numbers& to, const Idx& x) {
    for (auto v : x.values) put(to, v);
}
inline void put(Numbers& to, const detail::Gradcheck& x) { put(to, x.ok); }
inline void put(Numbers& to, const detail::Evaluation& x) {
    put(to, x.loss), put(to, x.accuracy), put(to, x.count);
}
template <class E, std::size_t n> void put(Numbers& to, const std::array<E, n>& x) {
    for (const E& each : x) put(to, each);
}
template <class E> void put(Numbers& to, const std::vector<E>& x) {
    for (const E& each : x)
        if constexpr (requires { put(to, each); })
            put(to, each);
        else
            put(to, 1);
}

struct Outcome {
    bool threw = false, foreign = false;  // threw a tally::Error; threw a different exception
    std::string message;
    Numbers numbers;
};

inline sigjmp_buf after_a_crash;
inline void crashed(int) { siglongjmp(after_a_crash, 1); }

template <class F> Outcome outcome_of(F f) {
    Outcome seen;
    if (sigsetjmp(after_a_crash, 1)) return {true, true, "a crash", {}};
    try {
        World w;
        if constexpr (std::is_void_v<decltype(f(w))>) {
            f(w);
        } else {
            const auto& result = f(w);
            if constexpr (requires { put(seen.numbers, result); }) put(seen.numbers, result);
        }
    } catch (const Error& e) {
        seen = {true, false, e.what(), {}};
    } catch (const std::exception& e) {
        seen = {true, true, e.what(), {}};
    }
    return seen;
}

inline bool close(const Numbers& a, const Numbers& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!(std::abs(a[i] - b[i]) <= 2e-5 * std::max(1., std::abs(b[i])) ||
              (std::isnan(a[i]) && std::isnan(b[i]))))
            return false;
    }
    return true;
}
inline std::string describe(const Outcome& seen) {
    std::ostringstream out;
    if (seen.threw)
        out << (seen.foreign ? "another exception: " : "an Error: ") << seen.message;
    else
        for (std::size_t i = 0; i < std::min<std::size_t>(seen.numbers.size(), 12); ++i)
            out << seen.numbers[i] << " ";
    return out.str();
}

// ---- the comparisons ----

inline int tried = 0, failed = 0;
inline const char* trying = "";
inline void fail(const std::string& why) {
    ++failed;
    std::cout << trying << ": " << why << "\n";
}
inline bool begins_with_a_call(const Outcome& seen) {
    return seen.threw && !seen.foreign && seen.message.rfind('[', 0) == 0 &&
           seen.message.find("] ") != std::string::npos;
}
inline void begin(const char* what) { ++tried, trying = what; }

inline void rejected(const char* what, bool compiles) {
    begin(what);
    if (compiles) fail("it compiles");
}
template <class F> void error(const char* what, F f) {
    begin(what);
    const Outcome seen = outcome_of(f);
    if (!begins_with_a_call(seen))
        fail("expected an Error that begins with [the call], got " + describe(seen));
}
template <class F> void right(const char* what, F f, const Numbers& numbers) {
    begin(what);
    const Outcome seen = outcome_of(f);
    if (seen.threw || !close(seen.numbers, numbers))
        fail("wrong: " + describe(seen) + "for " + describe({false, false, "", numbers}));
}
template <class F> void accepted(const char* what, F f) {
    begin(what);
    if (const Outcome seen = outcome_of(f); seen.threw)
        fail("threw although the call is right: " + describe(seen));
}
template <class F, class G> void same(const char* what, F f, G g) {
    begin(what);
    const Outcome seen = outcome_of(f), other = outcome_of(g);
    if (seen.threw || !close(seen.numbers, other.numbers))
        fail("wrong: " + describe(seen) + "for " + describe(other));
}
template <class F> void nan(const char* what, F f) {
    begin(what);
    const Outcome seen = outcome_of(f);
    bool found = false;
    for (double v : seen.numbers) found |= std::isnan(v);
    if (seen.threw ? !begins_with_a_call(seen) : !found) fail("NaN is not seen in " + describe(seen));
}
template <class F> void settled(const char* what, F f) {
    begin(what);
    const Outcome seen = outcome_of(f);
    if (seen.threw && !begins_with_a_call(seen))
        fail("expected an Error that begins with [the call], got " + describe(seen));
}

}  // namespace misuse
