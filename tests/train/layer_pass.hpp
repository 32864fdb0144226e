// check_pass() compares a layer's outputs and gradients with the results of PyTorch in tests/fixtures/layers.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "catch.hpp"
#include "tally/io/safetensors.hpp"
#include "tally/train/module.hpp"

namespace tally::test {

inline const std::string layer_folder = TALLY_SOURCE_DIR "/tests/fixtures/layers/";

class Expected {
public:
    explicit Expected(const std::string& name)
        : file_(detail::load_safetensors(layer_folder + name + "-pass.safetensors")) {}
    template <class T = double> const Array<T>& get(const std::string& name) const {
        return std::get<Array<T>>(file_.tensors.at(name));
    }
    const Array<double>& operator[](const std::string& name) const { return get(name); }

private:
    detail::Safetensors file_;
};

// Requires that each difference is at most 1e-12 * min(1, largest expected magnitude) (docs/fixtures.md). If
// `transposed` is true, `other` has the shape (out, in), and `mine` has the shape (in, out).
inline void check_close(const std::string& what, const Array<double>& mine, const Array<double>& other,
                        bool transposed = false) {
    CAPTURE(what);
    const Shape& shape = mine.shape();
    REQUIRE((transposed ? Shape{other.shape()[1], other.shape()[0]} : other.shape()) == shape);
    double scale = 0, worst = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        const auto rows = static_cast<std::size_t>(transposed ? shape[0] : 1);
        const std::size_t columns = transposed ? mine.size() / rows : mine.size();
        const double wanted = other.span()[transposed ? i % columns * rows + i / columns : i];
        worst = std::max(worst, std::abs(mine.span()[i] - wanted));
        scale = std::max(scale, std::abs(wanted));
    }
    CHECK(worst <= 1e-12 * std::min(scale, 1.0));
}

inline void check_pass(Layer<double>& model, const Expected& expected, const std::string& suffix = "",
                       ForwardPass pass = {}) {
    Tensor64 x = parameter(expected["x"]);
    const Tensor64 y = model(x, pass);
    check_close("y", y.value(), expected["y" + suffix]);
    for (const Tensor64& p : model.parameters()) p.zero_grad();
    y.backward(expected["seed"]);
    check_close("x", x.grad(), expected["grad" + suffix + ".x"]);
    for (const detail::Member<double>& member : detail::members(model))
        if (member.parameter)
            check_close(member.name, member.parameter.grad(), expected["grad" + suffix + "." + member.name],
                        member.transposed);
}

}  // namespace tally::test
