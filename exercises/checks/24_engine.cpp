// Exercise 24, an engine: the answer, the mistakes that are known, and the check.
#include "24_engine.hpp"

#include "check.hpp"
#include "toy.hpp"

namespace {

namespace right {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace right

namespace products_rounded {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum += at(a->value, i * inner + k) * at(b->value, k * columns + j);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga += at(dy, i * columns + j) * at(b->value, k * columns + j);
                    gb += at(a->value, i * inner + k) * at(dy, i * columns + j);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace products_rounded

namespace parts_added_afterwards {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float> da(a->value.size()), db(b->value.size()), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
        for (std::size_t i = 0; i < da.size(); ++i) gradient_of(a)[i] += da[i];
        for (std::size_t i = 0; i < db.size(); ++i) gradient_of(b)[i] += db[i];
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace parts_added_afterwards

namespace matmul_sets {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        std::fill(da.begin(), da.end(), 0.0f);
        std::fill(db.begin(), db.end(), 0.0f);
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace matmul_sets

namespace leaves_begin_anew {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        for (const Value& input : newest->inputs)
            if (input->inputs.empty()) input->gradient.clear();
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace leaves_begin_anew

namespace every_path {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void pull(const Value& x) {
    if (x->inputs.empty()) return;
    x->rule(*x);
    for (const Value& input : x->inputs) pull(input);
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    pull(y);
}
}  // namespace every_path

namespace begins_with_the_value {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = y->value[0];
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace begins_with_the_value

namespace mean_not_divided {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0];
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i] / by;
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace mean_not_divided

namespace divide_passes_on {
// The gradient to be added to: zeros, while nothing has come.
std::vector<float>& gradient_of(const Value& x) {
    x->gradient.resize(x->value.size());
    return x->gradient;
}

Value add(const Value& a, const Value& b) {
    Value y = leaf(a->rows, a->columns, a->value);
    for (std::size_t i = 0; i < y->value.size(); ++i) y->value[i] += b->value[i];
    y->inputs = {a, b};
    y->rule = [](const Node& node) {
        for (const Value& input : node.inputs)
            for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(input)[i] += node.gradient[i];
    };
    return y;
}

Value matmul(const Value& a, const Value& b) {
    const int rows = a->rows, inner = a->columns, columns = b->columns;
    Value y = leaf(rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns)));
    const auto at = [](std::vector<float>& values, int i) -> float& {
        return values[static_cast<std::size_t>(i)];
    };
    for (int i = 0; i < rows; ++i)
        for (int k = 0; k < inner; ++k)
            for (int j = 0; j < columns; ++j) {
                float& sum = at(y->value, i * columns + j);
                sum = std::fma(at(a->value, i * inner + k), at(b->value, k * columns + j), sum);
            }
    y->inputs = {a, b};
    y->rule = [=](const Node& node) {
        std::vector<float>&da = gradient_of(a), &db = gradient_of(b), dy = node.gradient;
        for (int i = 0; i < rows; ++i)
            for (int k = 0; k < inner; ++k)
                for (int j = 0; j < columns; ++j) {
                    float &ga = at(da, i * inner + k), &gb = at(db, k * columns + j);
                    ga = std::fma(at(dy, i * columns + j), at(b->value, k * columns + j), ga);
                    gb = std::fma(at(a->value, i * inner + k), at(dy, i * columns + j), gb);
                }
    };
    return y;
}

Value mean(const Value& x) {
    const float count = static_cast<float>(x->value.size());
    Value y = leaf(1, 1, {std::accumulate(x->value.begin(), x->value.end(), 0.0f) / count});
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (float& g : gradient_of(x)) g += node.gradient[0] / count;
    };
    return y;
}

Value divide(const Value& x, float by) {
    Value y = leaf(x->rows, x->columns, x->value);
    for (float& v : y->value) v /= by;
    y->inputs = {x};
    y->rule = [=](const Node& node) {
        for (std::size_t i = 0; i < node.gradient.size(); ++i) gradient_of(x)[i] += node.gradient[i];
    };
    return y;
}

void backward(const Value& y) {
    gradient_of(y)[0] = 1;
    std::map<int, Value> waiting{{y->id, y}};
    while (!waiting.empty()) {
        const Value newest = std::prev(waiting.end())->second;
        waiting.erase(newest->id);
        if (newest->inputs.empty()) continue;
        newest->rule(*newest);
        newest->gradient.clear();
        for (const Value& input : newest->inputs) waiting.emplace(input->id, input);
    }
}
}  // namespace divide_passes_on

struct Functions {
    decltype(&::matmul) matmul;
    decltype(&::add) add;
    decltype(&::mean) mean;
    decltype(&::divide) divide;
    decltype(&::backward) backward;
};

using tally::Tensor;

Value as_leaf(const Tensor& x) {
    const auto& shape = x.shape();
    const int columns = shape.rank() == 2 ? static_cast<int>(shape[1]) : 1;
    return leaf(static_cast<int>(shape[0]), columns, x.value().to_vector());
}

// Which order of additions tally's product has is docs/architecture.md's to say; should it change, so must this exercise.
bool same_bits(const Value& mine, const Tensor& real) { return mine->gradient == real.grad().to_vector(); }

void examine(exercise::Look& look, const Functions& yours) {
    const auto accumulate = [&](const Tensor& x, const Tensor& w, int size) {
        const int parts = static_cast<int>(x.shape()[0]) / size;
        Value weight = as_leaf(w);
        if (!look.runs([&] {
                for (const Tensor& micro : split(x, size))
                    yours.backward(yours.divide(yours.mean(yours.matmul(as_leaf(micro), weight)),
                                                static_cast<float>(parts)));
            }))
            return;
        for (const Tensor& micro : split(x, size)) (mean(matmul(micro, w)) / parts).backward();
        look.equal("gradient of w", exercise::as_numbers(weight->gradient), exercise::gradient_of(w));
        look.holds(same_bits(weight, w),
                   "right to rounding, but not the same bits as tally's: each product is to be added "
                   "directly to the gradient that is there, row after row");
    };
    for (const int size : {6, 2, 3, 1}) {
        look.with("the toy, " + std::to_string(size) + " rows in a micro-batch, divided");
        accumulate(exercise::toy_rows(), exercise::toy_weight(), size);
    }
    for (int draw = 0; draw < 3; ++draw) {
        const int size = look.whole(1, 4), parts = look.whole(2, 4), columns = look.whole(2, 4);
        look.with("random numbers, " + std::to_string(parts) + " micro-batches of " + std::to_string(size) +
                  " rows");
        const Tensor x = exercise::random_rows(look, size * parts, columns);
        accumulate(x, exercise::random_weight(look, columns), size);
    }
    look.with("h = matmul(x, v), mean(add(h, matmul(h, v))): h and v are used twice");
    const Tensor x = exercise::random_rows(look, 4, 3),
                 square = tally::parameter(exercise::random_rows(look, 3, 3).value());
    Value v = as_leaf(square);
    if (look.runs([&] {
            const Value h = yours.matmul(as_leaf(x), v);
            yours.backward(yours.mean(yours.add(h, yours.matmul(h, v))));
        })) {
        const Tensor h = matmul(x, square);
        mean(h + matmul(h, square)).backward();
        look.equal("gradient of v", exercise::as_numbers(v->gradient), exercise::gradient_of(square));
    }
}

const exercise::Add add_to_the_course(
    {.number = 24,
     .slug = "engine",
     .title = "an engine for arrays, from nothing, to the same bits",
     .minutes = 60,
     .lesson = "the-diamond",
     .functions = {"matmul", "add", "mean", "divide", "backward"},
     .hints = {"What do exercises 2 and 4 say about the order of the visits, and about the two gradients of "
               "a product?",
               "Do mean and divide first: they are like add(). Then backward, with a std::map<int, Value> of "
               "those that wait, by their id. matmul comes last: three loops forward, and the same three "
               "loops in its rule.",
               "backward: the gradient of y is 1; as long as somebody waits, take the one with the largest "
               "id out; if it has inputs, call its rule, clear its gradient, and let its inputs wait. "
               "matmul's rule: for each i, k, j one product is added to da and one to db."},
     .why = "This is an engine. What tally adds is many operations, memory that is counted, two devices, and "
            "care; the idea is the one that you have written, and its bits are the same."},
    examine, Functions{right::matmul, right::add, right::mean, right::divide, right::backward},
    {{"products_rounded",
      {products_rounded::matmul, products_rounded::add, products_rounded::mean, products_rounded::divide,
       products_rounded::backward},
      "Right, to rounding. You round each product before you add it, and so round twice; std::fma(p, q, sum) "
      "rounds once, as tally does."},
     {"parts_added_afterwards",
      {parts_added_afterwards::matmul, parts_added_afterwards::add, parts_added_afterwards::mean,
       parts_added_afterwards::divide, parts_added_afterwards::backward},
      "Right, to rounding. For the same bits each product has to be added directly to the gradient that is "
      "there, row after row of a: a sum of its own that is added afterwards rounds elsewhere."},
     {"matmul_sets",
      {matmul_sets::matmul, matmul_sets::add, matmul_sets::mean, matmul_sets::divide, matmul_sets::backward},
      "matmul's rule erases what was in the gradients of its operands: of several uses, and of several "
      "micro-batches, only the last one is left."},
     {"leaves_begin_anew",
      {leaves_begin_anew::matmul, leaves_begin_anew::add, leaves_begin_anew::mean, leaves_begin_anew::divide,
       leaves_begin_anew::backward},
      "backward lets leaves begin anew, so each micro-batch erases those before it. A leaf keeps its "
      "gradient, and whatever comes adds."},
     {"every_path",
      {every_path::matmul, every_path::add, every_path::mean, every_path::divide, every_path::backward},
      "You go down every path, and a value that was used twice hands on its gradient twice, the second time "
      "together with the first. Each value has its turn once, when its gradient is complete."},
     {"begins_with_the_value",
      {begins_with_the_value::matmul, begins_with_the_value::add, begins_with_the_value::mean,
       begins_with_the_value::divide, begins_with_the_value::backward},
      "backward begins with the value of y as its gradient. How y moves when y moves is 1, whatever its "
      "value."},
     {"mean_not_divided",
      {mean_not_divided::matmul, mean_not_divided::add, mean_not_divided::mean, mean_not_divided::divide,
       mean_not_divided::backward},
      "mean's rule does not divide: each number moves the mean by 1 / count only."},
     {"divide_passes_on",
      {divide_passes_on::matmul, divide_passes_on::add, divide_passes_on::mean, divide_passes_on::divide,
       divide_passes_on::backward},
      "divide divides forward and not backward: the gradient passes it unchanged, and comes out as many "
      "times too large."}});

}  // namespace
