// Makes the rows of losses, softmax and layer norm. The row of cross-entropy also measures one fused loop
// without autograd, in which the compiler vectorises exp.
#include <bit>
#include <cmath>
#include <memory>

#include "bench/table/aligned.hpp"
#include "bench/table/frameworks.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/rows.hpp"
#include "tally/tally.hpp"

namespace tally::bench {
namespace {

// Returns exp(x) for x <= 0 with an error of at most two units in the last place. Computes 2^n times a
// polynomial in x - n ln 2. Below -87 the function returns exp(-87), which is nearly 0.
inline float exp_of_negative(float x) {
    x = x < -87 ? -87 : x;
    const float shifted = x * 1.44269504f + 12582912.f;  // n is in the lowest bits
    const float n = shifted - 12582912.f;
    const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    return std::bit_cast<float>(std::bit_cast<std::int32_t>(p) +
                                (std::bit_cast<std::int32_t>(shifted) << 23));
}

class FusedLoop {
public:
    explicit FusedLoop(const Logits& logits)
        : rows_(static_cast<std::size_t>(logits.rows)),
          classes_(static_cast<std::size_t>(logits.classes)),
          x_(logits.values()),
          dx_(rows_ * classes_),
          labels_(logits.labels()) {}

    void run() {
        loss_ = 0;
        const float share = 1 / static_cast<float>(rows_);
        for (std::size_t r = 0; r < rows_; ++r) row(x_ + r * classes_, dx_ + r * classes_, labels_[r], share);
    }
    Numbers numbers() {
        run();
        return {dx_.doubles()};
    }

private:
    static constexpr std::size_t lanes =
        64;  // explicit lanes, because the compiler does not reassociate sums

    void row(const float* __restrict x, float* __restrict d, std::int32_t label, float share) {
        float top[lanes], total[lanes] = {};
        std::fill_n(top, lanes, x[0]);
        const std::size_t whole = classes_ / lanes * lanes;
        for (std::size_t i = 0; i < whole; i += lanes)
            for (std::size_t l = 0; l < lanes; ++l) top[l] = top[l] > x[i + l] ? top[l] : x[i + l];
        float largest = *std::max_element(top, top + lanes);
        for (std::size_t i = whole; i < classes_; ++i) largest = largest > x[i] ? largest : x[i];
        for (std::size_t i = 0; i < whole; i += lanes)
            for (std::size_t l = 0; l < lanes; ++l)
                total[l] += d[i + l] = exp_of_negative(x[i + l] - largest);
        for (std::size_t i = whole; i < classes_; ++i) total[0] += d[i] = exp_of_negative(x[i] - largest);
        float sum = 0;
        for (const float t : total) sum += t;
        const float scale = share / sum;
        for (std::size_t i = 0; i < classes_; ++i) d[i] *= scale;
        d[label] -= share;
        loss_ += (std::log(sum) - (x[label] - largest)) * share;
    }

    std::size_t rows_, classes_;
    float loss_ = 0;
    Aligned x_, dx_;
    std::vector<std::int32_t> labels_;
};

Row cross_entropy_row() {
    const Logits logits;
    const Tensor x = parameter(Array<float>({logits.rows, logits.classes}, logits.values()));
    const Array<std::int32_t> labels({logits.rows}, logits.labels());
    const auto run = [x, labels] {
        x.zero_grad();
        cross_entropy(x, labels).mean().backward();
    };
    const auto loop = std::make_shared<FusedLoop>(logits);
    Row row{"cross-entropy",
            "softmax cross-entropy 512x1000, forward + backward",
            {{"tally", Role::tally, run,
              [x, run] {
                  run();
                  return Numbers{doubles(x.grad().span())};
              }},
             {"one fused loop", Role::floor, [loop] { loop->run(); }, [loop] { return loop->numbers(); }}}};
    row.must = {{Goal::faster, 2.5, libtorch}, {Goal::faster, 1, jax}};
    row.aims = {{Goal::faster, 3.5, libtorch}, {Goal::faster, 1.15, jax}};
    add_libtorch(row, logits);
    Description work{"cross-entropy"};
    work.arrays = {{{logits.rows, logits.classes}, logits.values()}};
    work.labels = logits.labels();
    work.answers = {work.arrays[0].values.size()};
    add_frameworks(row, work);
    return row;
}

Description::Numbers numbers_of(std::vector<std::int64_t> shape, std::uint64_t stream) {
    std::size_t size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    return {std::move(shape), Mlp::uniform(size, stream, 2)};
}

// Makes a row for a function. The last array of `work` is the gradient of the function's result.
Row function_row(std::string name, std::string title, Description work, auto backward) {
    std::vector<Tensor> parameters;
    for (std::size_t i = 0; i + 1 < work.arrays.size(); ++i) {
        parameters.push_back(parameter(Array<float>(Shape(work.arrays[i].shape), work.arrays[i].values)));
        work.answers.push_back(work.arrays[i].values.size());
    }
    const Array<float> last(Shape(work.arrays.back().shape), work.arrays.back().values);
    const auto run = [=] {
        for (const Tensor& p : parameters) p.zero_grad();
        backward(parameters, last);
    };
    Row row{std::move(name), std::move(title), {{"tally", Role::tally, run, [=] {
                                                     run();
                                                     Numbers all;
                                                     for (const Tensor& p : parameters)
                                                         all.push_back(doubles(p.grad().span()));
                                                     return all;
                                                 }}}};
    row.aims = {{Goal::faster, 1, jax}};
    add_frameworks(row, work);
    return row;
}

using Parameters = std::vector<Tensor>;

Row softmax_row() {
    return function_row(
        "softmax", "softmax 512x1000, forward + backward",
        {.kind = "softmax", .arrays = {numbers_of({512, 1000}, 3), numbers_of({512, 1000}, 7)}},
        [](const Parameters& p, const Array<float>& seed) { softmax(p[0]).backward(seed); });
}

Row layer_norm_row() {
    return function_row(
        "layer-norm", "layer norm 512x1024, forward + backward",
        {.kind = "layer-norm",
         .arrays = {numbers_of({512, 1024}, 3), numbers_of({1024}, 8), numbers_of({1024}, 9),
                    numbers_of({512, 1024}, 7)}},
        [](const Parameters& p, const Array<float>& seed) { layer_norm(p[0], p[1], p[2]).backward(seed); });
}

Row mse_row() {
    return function_row("mse", "mse 512x1000, forward + backward",
                        {.kind = "mse", .arrays = {numbers_of({512, 1000}, 3), numbers_of({512, 1000}, 7)}},
                        [](const Parameters& p, const Array<float>& target) {
                            mse(p[0], constant(target)).mean().backward();
                        });
}

}  // namespace

std::vector<Planned> loss_rows() {
    return {{"cross-entropy", cross_entropy_row},
            {"softmax", softmax_row},
            {"layer-norm", layer_norm_row},
            {"mse", mse_row}};
}

}  // namespace tally::bench
