// A transformer block learns to predict the next letter of a poem. The numbers of letters in the
// micro-batches differ, but each letter has the same weight.
//
//     example_text [UPDATES [FOLDER [float|double [running|exact]]]]
//
// FOLDER receives the files that pytorch.py needs. mpirun can start several processes (docs/processes.md).
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "tally/distributed.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace tally;

namespace {

constexpr std::uint64_t seed = 7;
constexpr std::int64_t width = 32, heads = 4, ascii = 128, places = 66, batch = 28;
constexpr std::int32_t no_letter = -100;  // the label of padding, which cross_entropy does not count
const std::vector<std::int64_t> micro_batches = {16, 8, 4};

// Each line of the poem becomes a row of letters and a row of next letters. Short rows are padded.
struct Poem {
    Array<std::int32_t> letters, next;
};

Poem read(const std::string& path) {
    std::ifstream file(path);
    std::vector<std::int32_t> letters, next;
    for (std::string line; std::getline(file, line);) {
        if (line.empty()) continue;  // empty lines separate stanzas
        line = '\n' + line + '\n';
        for (std::size_t place = 0; place < places; ++place) {
            const bool there = place + 1 < line.size();
            letters.push_back(there ? line[place] : '\n');
            next.push_back(there ? line[place + 1] : no_letter);
        }
    }
    const Shape shape{std::ssize(letters) / places, places};
    return {Array<std::int32_t>(shape, letters), Array<std::int32_t>(shape, next)};
}

template <class S> struct Transformer : Module<S> {
    using V = Var<Array<S>>;

    V letter = parameter(uniform<S>({ascii, width}, -0.5, 0.5, {.seed = seed, .stream = 1}));
    V place = parameter(uniform<S>({places, width}, -0.5, 0.5, {.seed = seed, .stream = 2}));
    LayerNorm<S> norm1{width}, norm2{width}, norm3{width};
    SelfAttention<S> attention{width, heads, {seed, 3}, {.causal = true}};
    Linear<S> up{width, 4 * width, {seed, 4}}, down{4 * width, width, {seed, 5}};
    Linear<S> guess{width, ascii, {seed, 6}};

    V operator()(const Array<std::int32_t>& letters) {  // takes (lines, places), returns a row per letter
        V x = embedding(letter, letters) + place;
        x = x + attention(norm1(x));
        x = x + down(gelu(up(norm2(x))));
        return reshape(guess(norm3(x)), {-1, ascii});
    }

    void list(typename Module<S>::Members& members) override {
        members.parameter("letter.weight", letter);
        members.parameter("place.weight", place);
        members.child("norm1", norm1);
        members.child("attention", attention);
        members.child("norm2", norm2);
        members.child("up", up);
        members.child("down", down);
        members.child("norm3", norm3);
        members.child("guess", guess);
    }
};

template <class S>
void train(ProcessGroup& processes, std::int64_t updates, const std::string& folder, Sum sum) {
    const bool first = processes.rank() == 0;  // only the first process prints and writes files
    const Poem poem = read(TALLY_TEXT);
    Transformer<S> model;
    AdamW<S> optimizer(model.parameters(), {.learning_rate = 5e-3, .weight_decay = 0.01});
    // The number of letters in an update is known only after its last micro-batch. The Window adds the
    // gradients of summed losses, and divides once at the end. A mean of means would give the micro-batch of
    // 4 lines the weight of the micro-batch of 16 lines.
    DataParallel<S> ranks(processes);
    Window<S> window(optimizer, {.sum = sum}, &ranks);  // without &ranks: one process

    const int digits = std::numeric_limits<S>::max_digits10;
    const auto record = [&](std::int64_t update) {
        if (folder.empty() || !first) return;
        model.save_weights(folder + "/weights-" + std::to_string(update) + ".safetensors",
                           WeightOrder::pytorch);
    };
    record(0);
    std::vector<std::int32_t> order;
    for (std::int64_t update = 1; update <= updates; ++update) {
        const Items drawn = Items::shuffled(poem.letters.shape()[0], seed, update).part(0, batch);
        for (const Items& micro : window.share(split(drawn, micro_batches))) {
            const Var<Array<S>> logits = model(rows(poem.letters, micro));
            window.add(cross_entropy(logits, rows(poem.next, micro).reshaped({logits.shape()[0]}),
                                     {.ignore = no_letter}));
        }
        const auto done = window.finish();
        if (first)
            std::printf("update %3lld   loss %.*g   letters %.0f\n", static_cast<long long>(update), digits,
                        done.loss(), done.count);
        record(update);
        for (std::int64_t i = 0; i < batch; ++i) order.push_back(static_cast<std::int32_t>(drawn[i]));
    }
    if (!folder.empty() && first)
        save_npy(folder + "/order.npy", Array<std::int32_t>({updates, batch}, order));
}

}  // namespace

int main(int count, char** words) try {
    const std::int64_t updates = count > 1 ? std::atoll(words[1]) : 100;
    const std::string folder = count > 2 ? words[2] : "", type = count > 3 ? words[3] : "float",
                      sums = count > 4 ? words[4] : "running";
    if (type != "float" && type != "double") throw Error("[example] float or double, not '" + type + "'");
    if (sums != "running" && sums != "exact") throw Error("[example] running or exact, not '" + sums + "'");
    const Sum sum = sums == "exact" ? Sum::exact : Sum::running;
    ProcessGroup processes;
    type == "double" ? train<double>(processes, updates, folder, sum)
                     : train<float>(processes, updates, folder, sum);
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
