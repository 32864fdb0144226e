// Tests that Picture draws equal graphs with equal bytes, and that write() leaves a complete file or no file.
#include "tally/tools/graph_picture.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/ops/linear.hpp"
#include "tally/autograd/ops/reduce.hpp"
#include "tally/autograd/ops/shape_ops.hpp"
#include "tally/autograd/tensor.hpp"

using namespace tally;
using namespace tally::test;

namespace {

std::string accumulated() {
    const Picture::KeepValues keep_values;
    const Tensor w = parameter({0.5f, -1.25f}), x = constant(Array<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
    Picture drawn("two micro-batches");
    drawn.name(w, "w");
    for (const Tensor& micro : split(x, 2)) drawn.backward(mean(matmul(micro, w)) / 2);
    return drawn.svg() + drawn.dot();
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("Picture: the same graph yields the same bytes") { CHECK(accumulated() == accumulated()); }

TEST_CASE("Picture::backward: the gradients are those of backward()") {
    const Picture::KeepValues keep_values;
    const Scalar x = parameter(3.0), same = parameter(3.0);
    Picture drawn;
    drawn.backward(x * x + 1);
    drawn.backward(x * 2);
    (same * same + 1).backward();
    (same * 2).backward();
    CHECK(x.grad() == same.grad());
}

TEST_CASE("Picture: it shows names, operations, values, and gradients that have arrived") {
    const Picture::KeepValues keep_values;
    const Scalar x = parameter(3.0);
    const Scalar y = x * x;
    Picture before;
    before.name(x, "speed");
    before.add(y);
    const std::string dot = before.dot();
    CHECK(count(dot, "speed") >= 1);
    CHECK(count(dot, "mul") >= 1);
    CHECK(count(dot, "9") >= 1);
    CHECK(count(dot, "6") == 0);
    Picture after;
    after.backward(y);
    CHECK(count(after.dot(), "6") >= 1);
    // x is read twice, so one label shows the sum of both gradients.
    CHECK(count(after.dot(), "6.0000 together") == 1);
    CHECK_THROWS_WITH(Picture(y), contains("[picture] a backward pass has already used 'mul'"));
}

TEST_CASE("Picture: every gradient is shown once, at its box or at the arrows of its parts") {
    const Picture::KeepValues keep_values;
    const Scalar a = parameter(2.0), b = parameter(-3.0);
    const Scalar p = a * b, sum = p + exp(p * 0.0), y = sum * 5.0;
    Picture drawn;
    drawn.name(p, "p");
    drawn.backward(y);
    const std::string dot = drawn.dot();
    CHECK(count(dot, "label=\"5.0000\"") == 1);  // p sends 5 along the sum, and 0 along the product with 0
    CHECK(count(dot, "label=\"0.0000\"") == 1);
    CHECK(count(dot, "-15.0000\"") == 1);  // the box of a, but not the arrow to a
    CHECK(count(dot, "style=dashed") == 7);
}

TEST_CASE("Picture::write: the extension chooses .svg or .dot, and a file that cannot be written is named") {
    const Picture::KeepValues keep_values;
    const Scalar x = parameter(3.0);
    const Picture drawn(x * x);
    CHECK_THROWS_WITH(drawn.write("graph.png"),
                      "[picture] cannot write 'graph.png'; use a name that ends in .svg or .dot");
    CHECK_THROWS_WITH(drawn.write("/no/such/folder/graph.svg"), contains("/no/such/folder/graph.svg"));
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tally-picture-test";
    std::filesystem::create_directories(folder);
    const std::string path = (folder / "graph.svg").string();
    drawn.write(path);
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    CHECK(text.str() == drawn.svg());
    CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);  // no temporary file is left
    std::filesystem::remove_all(folder);
}
