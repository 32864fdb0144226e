// Lesson 22: a training with batches of 64 and one with four micro-batches of 16 end with the same weights.
#include "fashion_images.hpp"

using Network = Sequential<real>;

// Two networks have the same first weights, because they depend only on the seed.
static Network new_network() {
    const std::uint64_t seed = options().seed;
    Network network(Linear<real>(784, 512, {seed, 1}), ReLU<real>(), Linear<real>(512, 512, {seed, 2}),
                    ReLU<real>(), Linear<real>(512, 10, {seed, 3}));
    network.to(options().device);
    return network;
}

static Weights weights_of(Module<real>& network) {
    Weights all;
    for (const auto& parameter : network.parameters()) all.push_back(parameter.value().to_vector());
    return all;
}

LESSON(one_of("micro", "micro-batches of an update of 64", 4, {2, 4, 8, 16})) {
    const int n = setting("micro"), size = 64 / n;
    const double rate = 0.1;
    const Fashion<real> data = images();
    const std::int64_t count = data.train.count();

    step("The images show garments of ten classes. Each image has 28 x 28 pixels.");
    show("images", data.real ? "FashionMNIST by Zalando Research" : "generated, similar to FashionMNIST");
    auto sizes = table({"", "images", "batches of 64", "the last has", say("micro-batches of {}", size)});
    for (const auto& [name, pictures] :
         {std::pair("to train", data.train), std::pair("to test", data.test)}) {
        const Items all = Items::in_order(pictures.count());
        const std::vector<Items> batches = split(all, 64), micro_batches = split(all, size);
        sizes.row(name, all.count(), batches.size(), batches.back().count(), micro_batches.size());
    }
    note("An update takes 64 images, or {} micro-batches of {}. The last update takes fewer.", n, size);

    ask("how-many-weights");
    Network large = new_network(), micro = new_network();
    auto layers = table({"parameter", "shape", "numbers"});
    std::size_t numbers = 0;
    for (const auto& [name, parameter] : large.named_parameters()) {
        layers.row(name, to_string(parameter.shape()), parameter.value().size());
        numbers += parameter.value().size();
    }
    show("weights and biases", numbers);
    check_equal("parameters", numbers, 669706);
    const Weights start = weights_of(large);
    check_equal("both networks begin with the same weights", distance(weights_of(micro), start), 0);

    step("Train one epoch with batches of 64, by SGD with the rate {}, without shuffling.", rate);
    code(3);
    const auto add = [&](Window<real>& window, Network& network, const Items& items) {
        const Tensor logits = network(rows(data.train.images, items));
        window.add(cross_entropy(logits, rows(data.train.labels, items)));
    };
    const auto evaluate = [&](Network& network, std::int64_t at_a_time) {
        return Trainer<real>::evaluate(data.test.labels.to(Device::cpu), at_a_time, [&](const Items& items) {
            return network(rows(data.test.images, items));
        });
    };
    // Trains one epoch, prints in the format of the source, and returns the weights before the last update.
    const auto train = [&](Network& network, std::int64_t micro_size) {
        Sgd sgd(network.parameters(), {.learning_rate = rate});
        Window window(sgd, {.total = 64, .tail = Tail::scale});
        std::int64_t seen = 0;
        const std::int64_t every = count / 64 / 3;
        note("Epoch 1");
        note("-------------------");
        const std::vector<Items> parts = split(Items::in_order(count), micro_size);
        for (const auto i : progress(say("batches of {}", micro_size), std::int64_t(parts.size()))) {
            add(window, network, parts[std::size_t(i)]);
            seen += parts[std::size_t(i)].count();
            if (seen % 64 != 0) continue;
            const double loss = window.finish().loss();
            if ((window.updates() - 1) % every == 0)
                note(text("loss: %7f  [%5d/%5d]", loss, int(seen), int(count)));
        }
        const Weights before = weights_of(network);
        window.flush();
        const auto result = evaluate(network, 64);
        note("Test Results:");
        note(text(" Accuracy: %.1f%%, Avg loss: %8f", 100 * result.accuracy, result.loss));
        note("Done");
        return before;
    };
    const Weights before_the_tail = train(large, 64);

    step("Now train with the same images, in micro-batches of {}. An update still has 64 images.", size);
    note("The printed loss is now added up from micro-batches, so its last digit may differ.");
    train(micro, size);

    ask("the-weights");
    const Weights by_64 = weights_of(large), in_parts = weights_of(micro);
    show("farthest move of a weight", short_text(distance(by_64, start)));
    show("largest distance of two weights", short_text(distance(by_64, in_parts)));
    // With --products blas, the order of additions depends on the size of a batch, and so does the rounding.
    if (products() == Products::ordered)
        check_equal("all weights have the same bits", distance(by_64, in_parts), 0);

    ask("a-wrong-tail", "n", n);
    const double share = double(count % 64) / 64;
    const double mistake = (1 - share) * distance(by_64, before_the_tail);
    show("share of the last update", share, "largest distance with the mistake", short_text(mistake));
    check("the comparison notices the mistake", mistake > 1e-4);

    step("Test the networks trained in batches and micro-batches. A guess is right for 10 % of the images.");
    auto tests = table({"training", "tested in batches of", "accuracy", "loss of an image"});
    Network untrained = new_network();
    const auto row = [&](const char* training, Network& network, int at_a_time) {
        const auto result = evaluate(network, at_a_time);
        tests.row(training, at_a_time, text("%.1f %%", 100 * result.accuracy), text("%.6f", result.loss));
        return result;
    };
    const auto before = row("none", untrained, 64), after = row("batches of 64", large, 64);
    row("batches of 64", large, size);
    row("micro-batches", micro, 64);
    check("the loss has fallen", after.loss < before.loss);
    if (count == all_images && !data.real) check("the accuracy is above 80 %", after.accuracy > 0.8);
}
