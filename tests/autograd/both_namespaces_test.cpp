// Tests that a program may have both `using namespace std` and `using namespace tally`. Only the names
// `slice` and `stack` are ambiguous, if the program includes <valarray> or <stack>.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <ranges>
#include <set>
#include <span>
#include <sstream>
#include <stack>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <valarray>
#include <vector>

#include "catch.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace std;
using namespace tally;

namespace {

// Each line uses a name of std, which must not be ambiguous after `using namespace tally`.
double names_of_std() {
    map<string, int> counts{{"a", 1}};
    vector<double> numbers{1, -2, 3};
    transform(numbers.begin(), numbers.end(), numbers.begin(), [](double x) { return x * 2; });
    const tuple<int, int> two{1, 2};
    const int added = apply([](int a, int b) { return a + b; }, two);
    this_thread::yield();
    mt19937 dice(1);
    shuffle(numbers.begin(), numbers.end(), dice);
    sort(numbers.begin(), numbers.end());  // -4, 2, 6
    valarray<double> values{1, 2, 3};
    values += exp(values * 0.0) + pow(values, 0.0);  // 3, 4, 5
    const valarray<double> picked = values[std::slice(0, 2, 2)];
    std::stack<int> pile;
    pile.push(1);
    const double largest = max(numbers[0], min(numbers[1], 5.0)), root = sqrt(abs(numbers[0]));
    return counts["a"] + added + largest + root + exp(0.0) + log(1.0) + pow(2.0, 3.0) + sin(0.0) + cos(0.0) +
           tanh(0.0) + clamp(7.0, 0.0, 1.0) + accumulate(numbers.begin(), numbers.end(), 0.0) +
           static_cast<double>(stoi(to_string(5))) + picked.sum() + norm(complex<double>(3, 4));
}

}  // namespace

TEST_CASE("using namespace std and tally: arithmetic, shapes, sums and losses compile") {
    CHECK(names_of_std() == 1 + 3 + 2 + 2 + 1 + 0 + 8 + 0 + 1 + 0 + 1 + 4 + 5 + 8 + 25);
    Scalar s = parameter(2.0);
    Scalar t = exp(s) + log(s) + sqrt(s) + tanh(s) + sin(s) + cos(s) + abs(s) + pow(s, 2) + max(1.0, 2.0);
    t.backward();
    CHECK(s.has_grad());

    Tensor64 x = parameter(Array<double>({2, 3}, {0.5, -1.25, 0.75, 0.25, 1, -0.5}));
    Tensor64 w = parameter({0.5, -1.25, 0.75});
    const vector<Tensor64> halves = split(x, 1), parts = split(x, {1, 1});
    Tensor64 y = concat(vector<Tensor64>{halves[0], parts[1]}, 0);
    y = exp(y) + log(abs(y) + 1) - sqrt(abs(y)) + tanh(y) * sigmoid(y) / 3 + relu(y) + gelu(y) + sin(y) +
        cos(y);
    y = pow(clamp(y, 0.0, 4.0), 2) + maximum(y, x) + minimum(y, x) + detail::squared_difference(y, x);
    y = y + max(y, {1}, {.keepdims = true}) + max(y, 0, {.keepdims = true}) + mean(y, 0, {.keepdims = true}) +
        sum(y, {1}, {.keepdims = true}) + logsumexp(y, 1, {.keepdims = true});
    y = softplus(y) + silu(y) + log1p(abs(y)) + expm1(clamp(y, -1, 1)) + cumsum(y, 0) +
        var(y, 1, {.keepdims = true}) + prod(y, 0, {.keepdims = true});
    y = softmax(y) + log_softmax(y, 1) + transpose(reshape(permute(y, {1, 0}), {3, 2}));
    y = y + broadcast_to(reshape(w, {1, 3}), {2, 3}) + rows(x, Array<int32_t>{1, 0}) + x.detach();
    y = y + layer_norm(x, w, w) + where(Array<int32_t>({2, 3}, {1, 0, 1, 0, 1, 0}), x, y);
    Tensor64 z = matmul(y, w) + matmul(x, w) + y[0][1] + max(matmul(x, w));
    z = z + matmul(tally::slice(y, 0, 0, 2), w) + tally::stack<double>({x, x})[1][0][0];
    z = z + linear(x, reshape(w, {3, 1}))[0] + x.t()[0];
    const Tensor64 loss = mse(z, zeros<double>({2})).mean() + cross_entropy(x, Array<int32_t>{0, 2}).mean() +
                          info_nce(x, x).mean();
    loss.backward();
    CHECK(isfinite(w.grad().span()[0]));
    CHECK(isfinite(loss.item()));
    ostringstream out;
    out << loss << " " << w.grad() << " " << to_string(x.value()) << " " << to_string(x.shape());
    CHECK(out.str().find("made by") != string::npos);
    sgd_step({x, w}, 0.1);
    w.zero_grad();
    CHECK(grad(sum(w * w), {w})[0].span()[0] == 2 * w.value().span()[0]);
}

TEST_CASE("using namespace std and tally: memory, checkpoints, training and reports compile") {
    const Tensor x = randn({6, 3}, {.seed = 1}), e = eye(3) + full({3, 3}, 0.5) + ones({3, 3}) + arange(3);
    Sequential<float> model(Linear<float>(3, 2, {1, 0}), Tanh<float>());
    Sgd<float> sgd(model.parameters(), {.learning_rate = 0.1});
    Window<float> window(sgd, {.micro_batches = 3});
    const SavedValues saved;
    const Profile profile;
    const Timeline timeline;
    const ScopeName here("both");
    for (const Tensor& micro : split(x, 2)) {
        ForwardPass& pass = window.begin_micro_batch(2);
        window.add(mse(model(matmul(micro, e), pass), zeros({2, 2})));
    }
    const auto done = window.finish();
    CHECK(done.stepped);
    {
        const NoGrad off;
        CHECK(Node::live_count() >= 0);
    }
    const function<Tensor(Tensor)> step = [](Tensor h) { return tanh(h) * 2; };
    const Chain<Array<float>> chain{step, step, step, step};
    Tensor w = parameter({0.5f, -1.0f});
    sum(checkpoint_sequential(chain, 2, w) + checkpoint([](Tensor h) { return exp(h); }, w)).backward();
    CHECK(w.has_grad());
    const memory::Report report = memory::report();
    CHECK(size(report.peak_by) == 4);
    CHECK(detail::grad_norm<float>({w}) > 0);
    clip_grad_norm<float>({w}, 1.0);
    CHECK(Items::shuffled(5, 1, 0).count() == 5);
    const auto check =
        gradcheck([](const vector<Tensor64>& in) { return sum(in[0] * in[0]); }, {Array<double>{1, 2}});
    CHECK(check.ok);
}
