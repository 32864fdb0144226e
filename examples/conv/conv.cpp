// A small convolutional network learns to classify garments. Each update accumulates 24 + 24 + 16 pictures.
//
//     example_conv [UPDATES [FOLDER [float|double [running|exact]]]]
//
// FOLDER receives the files that pytorch.py needs. mpirun can start several processes (docs/processes.md).
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "course/data/fashion.hpp"
#include "tally/distributed.hpp"
#include "tally/tally.hpp"
#include "tally/train.hpp"

using namespace tally;

namespace {

constexpr std::uint64_t seed = 7;
constexpr std::int64_t batch = 64;
const std::vector<std::int64_t> micro_batches = {24, 24, 16};

// The network has two convolutions with 5 x 5 kernels, a pooling layer after each convolution, and a linear
// layer. The network has 11 274 parameters.
template <class S> struct Network : Module<S> {
    using V = Var<Array<S>>;

    V weight1 = parameter(uniform<S>({8, 1, 5, 5}, -0.2, 0.2, {.seed = seed, .stream = 1}));
    V bias1 = parameter(Array<S>::zeros({8}));
    V weight2 = parameter(
        uniform<S>({16, 8, 5, 5}, -1 / std::sqrt(200.0), 1 / std::sqrt(200.0), {.seed = seed, .stream = 2}));
    V bias2 = parameter(Array<S>::zeros({16}));
    Linear<S> last{16 * 7 * 7, 10, {seed, 3}};

    V operator()(const V& pictures) {  // takes (n, 784) and returns (n, 10)
        V x = reshape((pictures - 0.286) / 0.353, {-1, 1, 28, 28});
        x = max_pool2d(relu(conv2d(std::move(x), weight1, bias1, 1, 2)), 2);  // (n, 8, 14, 14)
        x = max_pool2d(relu(conv2d(std::move(x), weight2, bias2, 1, 2)), 2);  // (n, 16, 7, 7)
        return last(reshape(std::move(x), {-1, 16 * 7 * 7}));
    }

    // Lists the parameters with the names that PyTorch uses in files of weights.
    void list(typename Module<S>::Members& members) override {
        members.parameter("conv1.weight", weight1);
        members.parameter("conv1.bias", bias1);
        members.parameter("conv2.weight", weight2);
        members.parameter("conv2.bias", bias2);
        members.child("last", last);
    }
};

// Returns the pictures that tools/get-fashion-mnist has downloaded, or else generates pictures.
template <class S> Pictures<S> find_pictures() {
    if (has_fashion(fashion_folder)) return load_fashion<S>(fashion_folder).train;
    return generated_pictures<S>(4096, seed);
}

template <class S>
void train(ProcessGroup& processes, std::int64_t updates, const std::string& folder, Sum sum) {
    const bool first = processes.rank() == 0;  // only the first process prints and writes files
    const Pictures<S> pictures = find_pictures<S>();
    Network<S> network;
    Sgd<S> optimizer(network.parameters(), {.learning_rate = 0.01, .momentum = 0.9});
    // The loss of an update is the mean over 64 pictures. The number 64 is known before the first
    // micro-batch, so the Window divides each micro-batch's gradient by 64.
    DataParallel<S> ranks(processes);
    Window<S> window(optimizer, {.total = batch, .sum = sum}, &ranks);  // without &ranks: one process

    const int digits = std::numeric_limits<S>::max_digits10;
    const auto record = [&](std::int64_t update) {
        if (folder.empty() || !first) return;
        network.save_weights(folder + "/weights-" + std::to_string(update) + ".safetensors",
                             WeightOrder::pytorch);
    };
    if (!folder.empty() && first) {
        save_npy(folder + "/images.npy", pictures.images);
        save_npy(folder + "/labels.npy", pictures.labels);
    }
    record(0);
    std::vector<std::int32_t> order;
    for (std::int64_t update = 1; update <= updates; ++update) {
        const Items drawn = Items::shuffled(pictures.count(), seed, update).part(0, batch);
        for (const Items& micro : window.share(split(drawn, micro_batches))) {
            const Var<Array<S>> logits = network(rows(pictures.images, micro));
            window.add(cross_entropy(logits, rows(pictures.labels, micro)));
        }
        const auto done = window.finish();
        if (first)
            std::printf("update %3lld   loss %.*g\n", static_cast<long long>(update), digits, done.loss());
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
