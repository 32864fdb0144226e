// Tests save_weights() and load_weights(). tally loads PyTorch's files, and writes files with the same bytes.
// If loading fails, the Error names the weight, and the model is unchanged.
#include "tally/train/module.hpp"

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/io/crc64.hpp"
#include "tally/io/file_bytes.hpp"
#include "tally/io/safetensors.hpp"
#include "tally/train/layers.hpp"

namespace tally::test {
namespace {

const std::string layers = TALLY_SOURCE_DIR "/tests/fixtures/layers/";

template <class S> Sequential<S> network(std::uint64_t seed) {
    Sequential<S> model;
    model.add(Flatten<S>());
    model.add(Linear<S>(6, 5, {seed, 0}));
    model.add(ReLU<S>());
    model.add(Linear<S>(5, 4, {seed, 1}));
    model.add(GELU<S>());
    model.add(LayerNorm<S>(4));
    model.add(Linear<S>(4, 3, {seed, 2}, {.bias = false}));
    model.add(Tanh<S>());
    return model;
}

template <class S> std::vector<Array<S>> values(Module<S>& model) {
    std::vector<Array<S>> all;
    for (const detail::Member<S>& member : detail::members(model))
        all.push_back((member.buffer ? *member.buffer : member.parameter.value()).clone());
    return all;
}

template <class S> bool same_values(const std::vector<Array<S>>& a, const std::vector<Array<S>>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits<S>);
}

}  // namespace

TEST_CASE("load_weights: PyTorch's weights are loaded and written byte by byte, except for the checksum") {
    const Folder folder;
    Sequential<double> mlp = network<double>(1);
    SelfAttention<double> attention(8, 2, {1, 0});
    const auto check = [&](Module<double>& model, const std::string& name) {
        model.load_weights(layers + name, WeightOrder::pytorch);
        model.save_weights(folder / name, WeightOrder::pytorch);
        detail::Safetensors written = detail::load_safetensors(folder / name);
        CHECK(written.metadata.erase("tally.crc64") + written.metadata.erase("tally.checksum") == 2);
        CHECK(detail::safetensors_bytes(written) == read_bytes(layers + name));
    };
    check(mlp, "mlp.safetensors");
    check(attention, "attention.safetensors");
}

TEMPLATE_TEST_CASE("save_weights: weights are loaded bit by bit in either order", "", float, double) {
    const WeightOrder order = GENERATE(WeightOrder::tally, WeightOrder::pytorch);
    const Folder folder;
    Sequential<TestType> saved = network<TestType>(1), loaded = network<TestType>(2);
    REQUIRE_FALSE(same_values(values(saved), values(loaded)));
    const auto handles = loaded.parameters();
    saved.save_weights(folder / "w", order);
    loaded.load_weights(folder / "w", order);
    CHECK(same_values(values(saved), values(loaded)));
    CHECK(same_bits(handles[0].value(), saved.parameters()[0].value()));  // loading writes in place

    const detail::Safetensors file = detail::load_safetensors(folder / "w");
    CHECK(std::get<Array<TestType>>(file.tensors.at("1.weight")).shape() ==
          (order == WeightOrder::pytorch ? Shape{5, 6} : Shape{6, 5}));
}

TEST_CASE("load_weights: the error lists all weights that do not fit, and the model is unchanged") {
    const Folder folder;
    const std::string path = folder / "w";
    Sequential<double> model = network<double>(1);
    const auto before = values(model);
    model.save_weights(path);
    detail::Safetensors good = detail::load_safetensors(path);
    // Writes numbers that the model does not contain, so that the test would notice a loaded number.
    for (auto& [name, tensor] : good.tensors) {
        auto& array = std::get<Array<double>>(tensor);
        array = Array<double>::full(array.shape(), 9);
    }
    const auto message = [&](const std::map<std::string, detail::AnyArray>& tensors) {
        detail::save_safetensors(path, tensors, good.metadata);
        const std::string words = message_of([&] { model.load_weights(path); });
        CHECK(same_values(values(model), before));
        const std::string start = "[load_weights] '" + path + "' does not fit the model: ";
        return words.rfind(start, 0) == 0 ? words.substr(start.size()) : words;
    };

    auto missing = good.tensors;
    missing.erase("1.bias");
    missing.erase("5.weight");
    CHECK(message(missing) == "'1.bias' is missing; '5.weight' is missing");

    auto extra = good.tensors;
    extra.emplace("6.bias", Array<double>{1, 2, 3});
    extra.emplace("lr", Array<double>({}, {0.1}));
    CHECK(message(extra) == "the model has no '6.bias'; the model has no 'lr'");

    auto shaped = good.tensors;
    shaped.at("3.weight") = Array<double>::zeros({4, 5});
    shaped.at("3.bias") = Array<double>::zeros({4, 1});
    CHECK(message(shaped) ==
          "'3.weight' is (4, 5), the model requires (5, 4); '3.bias' is (4, 1), the model requires (4)");

    auto typed = good.tensors;
    typed.at("6.weight") = Array<float>::zeros({4, 3});
    CHECK(message(typed) == "'6.weight' is not of the model's type F64");

    auto everything = missing;
    everything.emplace("lr", Array<double>({}, {0.1}));
    everything.at("6.weight") = Array<double>::zeros({4, 3, 1});
    CHECK(
        message(everything) ==
        "'1.bias' is missing; '5.weight' is missing; '6.weight' is (4, 3, 1), the model requires (4, 3); the "
        "model has "
        "no 'lr'");
    detail::save_safetensors(path, good.tensors, good.metadata);
    CHECK_NOTHROW(model.load_weights(path));
}

TEST_CASE("load_weights: weights in the other order throw an Error, even if the matrices are square") {
    const Folder folder;
    const std::string path = folder / "w";
    Linear<float> model(3, 3, {1, 0});
    model.save_weights(path, WeightOrder::pytorch);
    CHECK_THROWS_WITH(
        model.load_weights(path),
        "[load_weights] '" + path +
            "' stores weights in a different order ('format' is 'pt'); load it with WeightOrder::pytorch");
    model.save_weights(path);
    CHECK_THROWS_WITH(model.load_weights(path, WeightOrder::pytorch),
                      contains("('format' is 'tally'); load it with WeightOrder::tally"));
    const detail::Safetensors file = detail::load_safetensors(path);
    for (const char* word : {"tf", "", "PT"}) {
        detail::save_safetensors(path, file.tensors, {{"format", word}});
        CHECK_THROWS_WITH(model.load_weights(path),
                          contains("does not declare the order of its weights ('format' is '" +
                                   std::string(word) + "'); name it: WeightOrder::pytorch"));
        CHECK_NOTHROW(model.load_weights(path, WeightOrder::pytorch));
    }
}

// safetensors.torch.save_file(model.state_dict(), path) writes no metadata, so tally cannot know whether a
// square matrix is transposed.
TEST_CASE("load_weights: PyTorch's weights without metadata require an explicit order") {
    const Folder folder;
    const std::string path = folder / "square";
    const Array<float> as_pytorch({2, 2}, {1, 2, 3, 4});
    detail::save_safetensors(path, {{"0.weight", as_pytorch}});
    Sequential<float> model(Linear<float>(2, 2, {1, 0}, {.bias = false}));
    const auto before = values(model);
    CHECK_THROWS_WITH(model.load_weights(path),
                      "[load_weights] '" + path +
                          "' does not declare the order of its weights (its metadata has no 'format'); name "
                          "it: WeightOrder::pytorch where a matrix is (out, in), as PyTorch saves it, "
                          "WeightOrder::tally where it is (in, out)");
    CHECK(same_values(values(model), before));
    model.load_weights(path, WeightOrder::pytorch);
    CHECK(model(constant(Array<float>({1, 2}, {1, 10}))).value().to_vector() == std::vector<float>{21, 43});
    model.load_weights(path, WeightOrder::tally);
    CHECK(model(constant(Array<float>({1, 2}, {1, 10}))).value().to_vector() == std::vector<float>{31, 42});

    // The matrix has the shape (3, 2), so only one order of weights fits the model.
    detail::save_safetensors(path, {{"0.weight", Array<float>({3, 2}, {1, 2, 3, 4, 5, 6})}});
    Sequential<float> wide(Linear<float>(2, 3, {1, 0}, {.bias = false}));
    CHECK_THROWS_WITH(wide.load_weights(path), contains("name it: WeightOrder::pytorch"));
    CHECK_NOTHROW(wide.load_weights(path, WeightOrder::pytorch));
}

TEST_CASE("load_weights: a file with any bit changed, or truncated anywhere, throws an Error") {
    const WeightOrder order = GENERATE(WeightOrder::tally, WeightOrder::pytorch);
    const Folder folder;
    const std::string path = folder / "w";
    Sequential<float> model(Linear<float>(3, 2, {1, 0}), LayerNorm<float>(2));
    model.save_weights(path, order);
    const std::string whole = read_bytes(path);
    REQUIRE_NOTHROW(detail::parse_safetensors(as_bytes(whole), "w"));
    const auto accepted = [&](const std::string& bytes) {
        try {
            detail::parse_safetensors(as_bytes(bytes), "w");
            return true;
        } catch (const Error&) {
            return false;
        }
    };
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
        std::string damaged = whole;
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
        if (accepted(damaged)) FAIL("bit " << bit);
    }
    for (std::size_t length = 0; length < whole.size(); ++length)
        if (accepted(whole.substr(0, length))) FAIL("cut off at " << length);
    CHECK(crc64(as_bytes("56789"), crc64(as_bytes("1234"))) == crc64(as_bytes("123456789")));

    // Files of other programs do not contain tally's metadata, so tally loads these files without a checksum.
    detail::Safetensors file = detail::load_safetensors(path);
    file.metadata.erase("tally.crc64");
    CHECK_THROWS_WITH(detail::parse_safetensors(as_bytes(detail::safetensors_bytes(file)), "w"),
                      contains("the metadata has 'tally.checksum', but no 'tally.crc64'"));
    file.metadata.erase("tally.checksum");
    detail::save_safetensors(path, file.tensors, file.metadata);
    CHECK_NOTHROW(model.load_weights(path, order));
}

}  // namespace tally::test
