// Makes the rows of elementwise operations and sums, which are limited by the bandwidth of the memory. The
// rows compare tally with plain loops, and with a copy of the same number of bytes.
#include <cstring>
#include <memory>
#include <string>

#include "bench/table/aligned.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/rows.hpp"
#include "tally/tally.hpp"

namespace tally::bench {
namespace {

using Kind = Elementwise::Kind;
constexpr const char* loop_name = "plain loops";

// Computes the operations with plain loops. Each gradient has its own buffer, as in tally.
class Loops {
public:
    explicit Loops(const Elementwise& work)
        : kind_(work.kind),
          rows_(static_cast<std::size_t>(work.rows)),
          columns_(static_cast<std::size_t>(work.columns)),
          x_(work.x()),
          other_(work.other()),
          dy_(work.seed()),
          y_(dy_.size()),
          dx_(x_.size()),
          dother_(other_.size()) {}

    void run() {
        switch (kind_) {
            case Kind::relu:
                return relu(x_, y_, dy_, dx_, x_.size());
            case Kind::add:
                return add(x_, other_, y_, dy_, dx_, dother_);
            case Kind::bias:
                return bias(x_, other_, y_, dy_, dx_, dother_);
            case Kind::sum_down:
                return sum_down(x_, y_, dy_, dx_);
            case Kind::sum_across:
                return sum_across(x_, y_, dy_, dx_);
        }
    }
    Numbers numbers() {
        run();
        if (kind_ == Kind::add || kind_ == Kind::bias) return {dx_.doubles(), dother_.doubles()};
        return {dx_.doubles()};
    }
    // Copies as many bytes as the loops in run() write.
    void copy() {
        std::memcpy(y_, x_, std::min(x_.size(), y_.size()) * sizeof(float));
        std::memcpy(dx_, x_, x_.size() * sizeof(float));
        if (kind_ == Kind::add) std::memcpy(dother_, x_, x_.size() * sizeof(float));
    }

private:
    static void relu(const float* __restrict x, float* __restrict y, const float* __restrict dy,
                     float* __restrict dx, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) y[i] = x[i] <= 0 ? 0 : x[i];
        for (std::size_t i = 0; i < n; ++i) {
            const float d = dy[i];
            dx[i] = y[i] <= 0 ? 0 : d;
        }
    }
    void add(const float* __restrict x, const float* __restrict other, float* __restrict y,
             const float* __restrict dy, float* __restrict dx, float* __restrict dother) const {
        for (std::size_t i = 0; i < rows_ * columns_; ++i) y[i] = x[i] + other[i];
        for (std::size_t i = 0; i < rows_ * columns_; ++i) dx[i] = dy[i];
        for (std::size_t i = 0; i < rows_ * columns_; ++i) dother[i] = dy[i];
    }
    void bias(const float* __restrict x, const float* __restrict b, float* __restrict y,
              const float* __restrict dy, float* __restrict dx, float* __restrict db) const {
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t i = 0; i < columns_; ++i) y[r * columns_ + i] = x[r * columns_ + i] + b[i];
        for (std::size_t i = 0; i < rows_ * columns_; ++i) dx[i] = dy[i];
        add_rows(dy, db);
    }
    void add_rows(const float* __restrict from, float* __restrict to) const {
        for (std::size_t i = 0; i < columns_; ++i) to[i] = 0;
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t i = 0; i < columns_; ++i) to[i] += from[r * columns_ + i];
    }
    void sum_down(const float* __restrict x, float* __restrict y, const float* __restrict dy,
                  float* __restrict dx) const {
        add_rows(x, y);
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t i = 0; i < columns_; ++i) dx[r * columns_ + i] = dy[i];
    }
    void sum_across(const float* __restrict x, float* __restrict y, const float* __restrict dy,
                    float* __restrict dx) const {
        constexpr std::size_t lanes = 64;
        for (std::size_t r = 0; r < rows_; ++r) {
            float partial[lanes] = {};
            for (std::size_t i = 0; i < columns_; i += lanes)
                for (std::size_t l = 0; l < lanes; ++l) partial[l] += x[r * columns_ + i + l];
            y[r] = 0;
            for (const float p : partial) y[r] += p;
        }
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t i = 0; i < columns_; ++i) dx[r * columns_ + i] = dy[r];
    }

    Kind kind_;
    std::size_t rows_, columns_;
    Aligned x_, other_, dy_, y_, dx_, dother_;
};

Side by_tally(const Elementwise& work) {
    const Shape shape{work.rows, work.columns};
    const bool two = work.kind == Kind::add || work.kind == Kind::bias;
    const Tensor x = parameter(Array<float>(shape, work.x()));
    const Tensor other =
        two ? parameter(Array<float>(work.kind == Kind::bias ? Shape{work.columns} : shape, work.other()))
            : Tensor();
    const Array<float> seed(work.kind == Kind::sum_down     ? Shape{work.columns}
                            : work.kind == Kind::sum_across ? Shape{work.rows}
                                                            : shape,
                            work.seed());
    const auto forward = [kind = work.kind](const Tensor& a, const Tensor& b) {
        switch (kind) {
            case Kind::relu:
                return relu(a);
            case Kind::sum_down:
                return sum(a, {0});
            case Kind::sum_across:
                return sum(a, {1});
            default:
                return a + b;
        }
    };
    const auto run = [=] {
        x.zero_grad();
        if (two) other.zero_grad();
        forward(x, other).backward(seed);
    };
    return {"tally", Role::tally, run, [=] {
                run();
                Numbers all{doubles(x.grad().span())};
                if (two) all.push_back(doubles(other.grad().span()));
                return all;
            }};
}

Planned planned(Kind kind, const char* word, const char* title, std::int64_t rows, std::int64_t columns) {
    const std::string size = std::to_string(rows) + "x" + std::to_string(columns);
    const std::string name = word + ("-" + size);
    return {name, [=] {
                const Elementwise work{kind, rows, columns};
                const auto loops = std::make_shared<Loops>(work);
                const auto numbers = [loops] { return loops->numbers(); };
                Row row{name,
                        title + (" " + size) + ", forward + backward",
                        {by_tally(work),
                         {loop_name, Role::floor, [loops] { loops->run(); }, numbers},
                         {"memcpy", Role::floor, [loops] { loops->copy(); }, numbers}}};
                row.must = {{Goal::at_most, 1.1, loop_name}};
                row.aims = {{Goal::at_most, 1, loop_name}};
                add_libtorch(row, work);
                return row;
            }};
}

}  // namespace

std::vector<Planned> elementwise_rows() {
    std::vector<Planned> all;
    for (const auto& [rows, columns] : {std::pair{64, 512}, std::pair{512, 1024}}) {
        all.push_back(planned(Kind::relu, "relu", "relu", rows, columns));
        all.push_back(planned(Kind::add, "add", "a + b", rows, columns));
        all.push_back(planned(Kind::bias, "bias", "x + bias", rows, columns));
        all.push_back(planned(Kind::sum_down, "sum-down", "sum over the first axis", rows, columns));
        all.push_back(planned(Kind::sum_across, "sum-across", "sum over the last axis", rows, columns));
    }
    return all;
}

}  // namespace tally::bench
