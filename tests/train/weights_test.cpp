// Weights as files: PyTorch's files are loaded and written again byte for byte; what does not fit is named,
// and the model is then as it was.
#include "train/weights.hpp"

#include "autograd/folder.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "train/file_testing.hpp"
#include "train/layers.hpp"
#include "train/safetensors.hpp"

namespace tally::test {
namespace {

const std::string layers = TALLY_SOURCE_DIR "/tests/fixtures/layers/";

template <class S>
Sequential<S> network(std::uint64_t seed) {
    Sequential<S> model;
    model.add(Flatten<S>());
    model.add(Linear<S>(6, 5, {seed, 0}));
    model.add(ReLU<S>());
    model.add(Linear<S>(5, 4, {seed, 1}));
    model.add(GELU<S>());
    model.add(LayerNorm<S>(4));
    model.add(Linear<S>(4, 3, {seed, 2}, false));
    model.add(Tanh<S>());
    return model;
}

template <class S>
std::vector<Array<S>> values(Module<S>& model) {
    std::vector<Array<S>> all;
    for (const Member<S>& member : members(model))
        all.push_back((member.buffer ? *member.buffer : member.parameter.value()).clone());
    return all;
}

template <class S>
bool same_values(const std::vector<Array<S>>& a, const std::vector<Array<S>>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits<S>);
}

struct WithBuffer : Module<float> {
    Array<float> running{1, 2, 3};
    void list(Members<float>& members) override { members.buffer("running_mean", running); }
};

}  // namespace

TEST_CASE("Weights from PyTorch are loaded and written again byte for byte") {
    const Folder folder;
    Sequential<double> mlp = network<double>(1);
    SelfAttention<double> attention(8, 2, {1, 0});
    const auto check = [&](Module<double>& model, const std::string& name) {
        load_weights(layers + name, model, WeightOrder::pytorch);
        save_weights(folder / name, model, WeightOrder::pytorch);
        CHECK(read_bytes(folder / name) == read_bytes(layers + name));
    };
    check(mlp, "mlp.safetensors");
    check(attention, "attention.safetensors");
}

TEMPLATE_TEST_CASE("Saved weights are loaded bit for bit in either order", "", float, double) {
    const WeightOrder order = GENERATE(WeightOrder::tally, WeightOrder::pytorch);
    const Folder folder;
    Sequential<TestType> saved = network<TestType>(1), loaded = network<TestType>(2);
    REQUIRE_FALSE(same_values(values(saved), values(loaded)));
    const auto handles = parameters(loaded);
    save_weights(folder / "w", saved, order);
    load_weights(folder / "w", loaded, order);
    CHECK(same_values(values(saved), values(loaded)));
    CHECK(same_bits(handles[0].value(), parameters(saved)[0].value()));  // in place

    const Safetensors file = load_safetensors(folder / "w");
    CHECK(std::get<Array<TestType>>(file.tensors.at("1.weight")).shape() ==
          (order == WeightOrder::pytorch ? Shape{5, 6} : Shape{6, 5}));
}

TEST_CASE("Buffers are saved and loaded too") {
    const Folder folder;
    WithBuffer saved, loaded;
    saved.running = {4, 5, 6};
    save_weights(folder / "w", saved);
    load_weights(folder / "w", loaded);
    CHECK(loaded.running.to_vector() == std::vector<float>{4, 5, 6});
}

TEST_CASE("Weights that do not fit are all named and the model is as it was") {
    const Folder folder;
    const std::string path = folder / "w";
    Sequential<double> model = network<double>(1);
    const auto before = values(model);
    save_weights(path, model);
    Safetensors good = load_safetensors(path);
    for (auto& [name, tensor] : good.tensors) {  // other numbers, to see that none of them arrives
        auto& array = std::get<Array<double>>(tensor);
        array = Array<double>::full(array.shape(), 9);
    }
    const auto said = [&](const std::map<std::string, AnyArray>& tensors) {
        save_safetensors(path, tensors, good.metadata);
        const std::string words = message_of([&] { load_weights(path, model); });
        CHECK(same_values(values(model), before));
        const std::string start = "[load_weights] '" + path + "' does not fit the model: ";
        return words.rfind(start, 0) == 0 ? words.substr(start.size()) : words;
    };

    auto missing = good.tensors;
    missing.erase("1.bias");
    missing.erase("5.weight");
    CHECK(said(missing) == "'1.bias' is missing; '5.weight' is missing");

    auto extra = good.tensors;
    extra.emplace("6.bias", Array<double>{1, 2, 3});
    extra.emplace("lr", Array<double>({}, {0.1}));
    CHECK(said(extra) == "the model has no '6.bias'; the model has no 'lr'");

    auto shaped = good.tensors;
    shaped.at("3.weight") = Array<double>::zeros({4, 5});
    shaped.at("3.bias") = Array<double>::zeros({4, 1});
    CHECK(said(shaped) ==
          "'3.weight' is (4, 5), the model wants (5, 4); '3.bias' is (4, 1), the model wants (4)");

    auto typed = good.tensors;
    typed.at("6.weight") = Array<float>::zeros({4, 3});
    CHECK(said(typed) == "'6.weight' is not of the model's type F64");

    auto everything = missing;
    everything.emplace("lr", Array<double>({}, {0.1}));
    everything.at("6.weight") = Array<double>::zeros({4, 3, 1});
    CHECK(said(everything) ==
          "'1.bias' is missing; '5.weight' is missing; '6.weight' is (4, 3, 1), the model wants (4, 3); the "
          "model has "
          "no 'lr'");
    save_safetensors(path, good.tensors, good.metadata);
    CHECK_NOTHROW(load_weights(path, model));
}

TEST_CASE("Weights in the other order are refused even where they are square") {
    const Folder folder;
    const std::string path = folder / "w";
    Linear<float> model(3, 3, {1, 0});
    save_weights(path, model, WeightOrder::pytorch);
    CHECK_THROWS_WITH(
        load_weights(path, model),
        "[load_weights] '" + path +
            "' holds weights in the other order ('format' is 'pt'); load it with WeightOrder::pytorch");
    save_weights(path, model);
    CHECK_THROWS_WITH(load_weights(path, model, WeightOrder::pytorch),
                      contains("('format' is 'tally'); load it with WeightOrder::tally"));
    const Safetensors file = load_safetensors(path);
    save_safetensors(path, file.tensors);  // a file that does not say is taken at the caller's word
    CHECK_NOTHROW(load_weights(path, model, WeightOrder::pytorch));
}

}  // namespace tally::test
