// Lesson 16: training with batches of 64 or with four micro-batches of 16 ends with the same weights.
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "course/data/fashion.hpp"
#include "course/kit/talk.hpp"
#include "tally/train.hpp"

using namespace tally;
using namespace tally::lesson;

namespace {

struct ARealTraining {
    const std::int64_t n = setting("micro"),
                       micro_batch = batch / n;  // micro-batches of an update, images in each micro-batch

    void talk() {
        const Fashion<real> data = images();
        const std::int64_t train_images = data.train.count();
        const bool whole = train_images == all_images;
        const double rate = whole ? 1e-3 : 0.1;  // a short training run has too few updates for a small rate

        step("Pictures of garments, 28 x 28, in ten classes.");
        show("these are", data.real ? "FashionMNIST by Zalando Research" : "drawn by tally in their place");
        if (!whole) note("A twin of seconds: fewer images, and a larger learning rate.");
        auto sizes =
            table({"", "images", "batches of 64", "the last has", say("batches of {}", micro_batch)});
        const auto count = [&](const char* name, std::int64_t images) {
            const std::vector<Items> by_64 = split(Items::in_order(images), batch),
                                     in_micro = split(Items::in_order(images), micro_batch);
            sizes.row(name, images, by_64.size(), by_64.back().count(), in_micro.size());
            return std::vector<std::size_t>{by_64.size(),
                                            (in_micro.size() + std::size_t(n) - 1) / std::size_t(n)};
        };
        const std::vector<std::size_t> updates = count("to train", train_images);
        count("to test", data.test.count());
        show("learning rate", rate);
        const auto expected = std::size_t((train_images + batch - 1) / batch);
        check_equal("updates in an epoch, either way", updates, {expected, expected});

        predict("784-512-512-10, said to have \"one hidden layer\". How many weights and biases?",
                {right(669706), wrong(407050, "That is with one hidden layer. Count the 512s."),
                 wrong(668672, "Each output has a bias, too."),
                 wrong(670490, "So it is if the pixels had biases as well. What is added to an input?"),
                 wrong(1818, "So many units there are. Weights are on the lines between them.")},
                hint("How many layers are there between the numbers?",
                     "A layer has inputs x outputs weights, and a bias for each output."),
                "Two layers are hidden. With one it would be 407 050.");
        Network large(options().seed), micro(options().seed);
        auto layers = table({"parameter", "shape", "numbers"});
        std::size_t numbers = 0;
        for (const auto& [name, parameter] : large.named_parameters()) {
            layers.row(name, to_string(parameter.shape()), parameter.value().size());
            numbers += parameter.value().size();
        }
        show("weights and biases", numbers);
        check_equal("parameters", numbers, 669706);
        const Tested untrained = test(large, data.test, batch);
        const Weights start = weights_of(large);
        check("the seed gives both networks the same weights", start == weights_of(micro));

        step(written("One epoch, batches of 64, SGD with rate %g, in order.", rate));
        const Epoch by_64 = train(large, data.train, batch, rate);
        const Tested after_64 = test(large, data.test, batch);
        print(by_64.lines, after_64);

        const bool ordered = products() == Products::ordered;
        // With ordered products the first option is right, and with BLAS the second option is right.
        const std::string cut = say("{} x {}", n, micro_batch);
        predict("The same by " + cut + ". After an epoch the weights are",
                {Option{"the same bits",
                        ordered ? "" : say("BLAS adds 64 rows in another order than {}.", micro_batch)},
                 Option{"equal to rounding",
                        ordered ? "Rounding differs where the order does. Does it here?" : ""},
                 wrong("only alike", "Nothing is drawn: the same images, in the same order, in each update."),
                 wrong("worse by a bit", "Each update has the gradient of the same 64 images.")},
                hint("Which additions make up an update's gradient, and in which order do they come?",
                     "Look at what lesson 7 promised of a large product."),
                ordered ? "The same sums, in one order." : "The same sums, in another order.");
        const Epoch in_parts = train(micro, data.train, micro_batch, rate);
        const Tested after_parts = test(micro, data.test, batch);
        print(in_parts.lines, after_parts);

        step("How far apart are the weights? And would a mistake be seen?");
        const auto rounding = [&](std::int64_t updates_made) {
            return rounded(updates_made, largest(by_64.weights.back()));
        };
        auto distances = table(
            {"updates", "max|w - start|", say("max|w 64 - w {}x{}|", micro_batch, n), "rounding", "ReLUs"});
        bool no_more_than_rounding = true;
        std::int64_t otherwise = 0;
        for (std::size_t i = 0; i < by_64.updates.size(); ++i) {
            const double between = apart(by_64.weights[i], in_parts.weights[i]);
            otherwise = decided_otherwise(by_64.passed, in_parts.passed, by_64.updates[i] * batch);
            if (otherwise == 0)
                no_more_than_rounding = no_more_than_rounding && between <= rounding(by_64.updates[i]);
            distances.row(by_64.updates[i], written("%.1e", apart(by_64.weights[i], start)),
                          written("%.1e", between), written("%.1e", rounding(by_64.updates[i])), otherwise);
        }
        const double distance = apart(by_64.weights.back(), in_parts.weights.back());
        const double by_rounding = rounding(by_64.updates.back());
        const double kinks = otherwise > 0 ? apart(by_64.weights.front(), start) / 8 : 0;
        check("while all ReLUs decide alike: rounding, no more", no_more_than_rounding);
        check_close("max|dw| after the epoch", distance, 0.0, by_rounding + kinks);
        if (ordered)
            check("ordered products: the same bits", by_64.weights.back() == in_parts.weights.back());
        note(otherwise == 0 ? distance == 0 ? "Not one bit of a weight differs."
                                            : "All ReLUs decided alike. It is rounding, and nothing else."
                            : written("%lld times a ReLU let an image pass in one training only.",
                                      static_cast<long long>(otherwise)));
        if (otherwise > 0) note("Rounding decided the first of them. The others followed.");
        if (in_parts.lines != by_64.lines)
            note(
                say("A loss above is added up {} at a time, and may differ in its last digit.", micro_batch));
        check_tail(by_64, in_parts, train_images, by_rounding + kinks);

        step(say("What has been learned, tested in batches of 64 and of {}.", micro_batch));
        const Tested tested_in_parts = test(large, data.test, micro_batch);
        auto tests = table({"trained, tested", "accuracy", "loss of an image", "mean of batch means"});
        const auto row = [&](const std::string& name, const Tested& tested) {
            tests.row(name, written("%.1f%%", 100 * tested.accuracy), written("%.6f", tested.loss),
                      written("%.6f", tested.mean_of_means));
        };
        row("not yet, in 64", untrained);
        row("by 64, in 64", after_64);
        row(say("by 64, in {}", micro_batch), tested_in_parts);
        row("by " + cut + ", in 64", after_parts);
        check_tested(untrained, after_64, tested_in_parts, data.test.count());
        note("Batches that are not equal must not weigh the same: the mean of means differs.");
    }

    static constexpr std::int64_t batch = 64, all_images = 60000;

    // Records for each image which units of both hidden layers are not 0 after ReLU.
    using Passed = std::array<std::vector<bool>, 2>;

    // Implements a network with two hidden layers: 784-512-512-10.
    class Network : public Layer<real> {
    public:
        explicit Network(std::uint64_t seed)
            : first_(fashion_pixels, 512, {seed, 1}),
              second_(512, 512, {seed, 2}),
              last_(512, 10, {seed, 3}) {
            this->to(options().device);
        }
        void list(Members& members) override {
            members.child("0", first_);
            members.child("2", second_);
            members.child("4", last_);
        }
        Passed* passed = nullptr;  // records the decisions if not null

    protected:
        Tensor forward(Tensor x, ForwardPass&) override {
            x = linear_relu(std::move(x), first_.weight, first_.bias);
            note_passed(0, x);
            x = linear_relu(std::move(x), second_.weight, second_.bias);
            note_passed(1, x);
            return linear(std::move(x), last_.weight, last_.bias);
        }

    private:
        void note_passed(std::size_t layer, const Tensor& y) {
            if (!passed) return;
            for (const real number : y.value().to_vector()) (*passed)[layer].push_back(number > 0);
        }

        Linear<real> first_, second_, last_;
    };

    using Weights = std::vector<std::vector<real>>;

    struct Tested {
        double accuracy = 0, loss = 0;  // mean over items
        double mean_of_means = 0;       // mean over batches
    };

    static Tested test(Network& network, const Pictures<real>& pictures, std::int64_t size) {
        const NoGrad off;
        Tested found;
        const std::vector<Items> parts = split(Items::in_order(pictures.count()), size);
        for (const Items& part : parts) {
            const Array<std::int32_t> labels = rows(pictures.labels, part);
            const Tensor logits = network(rows(pictures.images, part));
            const Loss<Array<real>> loss = cross_entropy(logits, labels);
            found.loss += double(loss.sum.item()) / double(pictures.count());
            found.mean_of_means += double(loss.mean().item()) / double(parts.size());
            const std::vector<real> scores = logits.value().to_vector();
            const std::vector<std::int32_t> truth = labels.to_vector();
            for (std::size_t i = 0; i < truth.size(); ++i) {
                const auto row = scores.begin() + std::ptrdiff_t(10 * i);
                found.accuracy += std::max_element(row, row + 10) - row == truth[i];
            }
        }
        found.accuracy /= double(pictures.count());
        return found;
    }

    // Holds results of an epoch: the losses of some updates, and the weights after these updates.
    struct Epoch {
        std::vector<std::string> lines;
        std::vector<std::int64_t> updates;
        std::vector<Weights> weights;
        Weights before_the_tail;
        Passed passed;
    };

    // Counts the units that are 0 after ReLU in only one of two training runs. Uses the first `images` pictures.
    static std::int64_t decided_otherwise(const Passed& a, const Passed& b, std::int64_t images) {
        std::int64_t found = 0;
        for (std::size_t layer = 0; layer < a.size(); ++layer)
            for (std::size_t i = 0; i < std::min(a[layer].size(), std::size_t(512 * images)); ++i)
                found += a[layer][i] != b[layer][i];
        return found;
    }

    // Trains one epoch with the images in order. An update uses 64 images, `size` in each micro-batch.
    static Epoch train(Network& network, const Pictures<real>& pictures, std::int64_t size, double rate) {
        Epoch seen;
        network.passed = &seen.passed;
        const std::vector<Items> parts = split(Items::in_order(pictures.count()), size);
        const std::int64_t every = std::max<std::int64_t>(1, pictures.count() / batch / 3);
        Sgd sgd(network.parameters(), {.learning_rate = rate});
        Window window(sgd, {.total = double(batch), .tail = Tail::scale});
        std::int64_t came = 0;  // images so far
        const auto update = [&](const Window<real>::Result& done) {
            if ((window.updates() - 1) % every != 0 || !done.stepped) return;
            seen.lines.push_back(
                written("loss: %7f  [%5d/%5d]", done.loss(), int(came), int(pictures.count())));
            seen.updates.push_back(window.updates());
            seen.weights.push_back(weights_of(network));
        };
        for (const auto i : progress(written("batches of %d", int(size)), std::int64_t(parts.size()))) {
            const Items& part = parts[std::size_t(i)];
            if (i == 0 && size == batch) code(3);
            const Tensor logits = network(rows(pictures.images, part));
            window.add(cross_entropy(logits, rows(pictures.labels, part)));
            if ((came += part.count()) % batch == 0) update(window.finish());
        }
        seen.before_the_tail = weights_of(network);
        update(window.flush());
        if (seen.updates.back() != window.updates()) {
            seen.updates.push_back(window.updates());
            seen.weights.push_back(weights_of(network));
        }
        network.passed = nullptr;
        return seen;
    }

    // ---- tools: text and values for tables and checks --------------------------------------------------

    static std::string written(const char* format, auto... numbers) {
        char text[80];
        std::snprintf(text, sizeof text, format, numbers...);
        return text;
    }

    // Returns the number of training images from the variable TALLY_IMAGES. 1312 images take a second.
    static std::int64_t images_wanted() {
        const char* wanted = std::getenv("TALLY_IMAGES");
        const std::int64_t images = wanted ? std::atoll(wanted) : all_images;
        if (images < 6 * batch || images > all_images)
            throw Error("[fashion] TALLY_IMAGES must be from 384 to 60000; it is '" + std::string(wanted) +
                        "'");
        return images;
    }

    static Fashion<real> images() {
        const auto here = std::filesystem::path(__FILE__).parent_path().parent_path() / fashion_folder;
        const std::string folder = std::filesystem::exists(here) ? here.string() : fashion_folder;
        const std::int64_t train = images_wanted(), test = train / 6;
        Fashion<real> found = has_fashion(folder) ? load_fashion<real>(folder)
                                                  : generated_fashion<real>(options().seed, train, test);
        const auto some = [](Pictures<real>& from, std::int64_t count) {
            from.images = rows(from.images, Items(0, count)).to(options().device);
            from.labels = rows(from.labels, Items(0, count)).to(options().device);
        };
        some(found.train, train);
        some(found.test, test);
        return found;
    }

    // Prints the results in the format of a tutorial's listing.
    static void print(const std::vector<std::string>& losses, const Tested& tested) {
        note("Epoch 1");
        note("-------------------");
        for (const std::string& line : losses) note(line);
        note("Test Results:");
        note(written(" Accuracy: %.1f%%, Avg loss: %8f", 100 * tested.accuracy, tested.loss));
        note("Done");
    }

    static Weights weights_of(Network& network) {
        Weights all;
        for (const auto& parameter : network.parameters()) all.push_back(parameter.value().to_vector());
        return all;
    }

    static double largest(const Weights& weights) {
        double found = 0;
        for (const auto& parameter : weights)
            for (const real w : parameter) found = std::max(found, std::abs(double(w)));
        return found;
    }

    static double apart(const Weights& a, const Weights& b) {
        double found = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            for (std::size_t j = 0; j < a[i].size(); ++j)
                found = std::max(found, std::abs(double(a[i][j]) - double(b[i][j])));
        return found;
    }

    // ---- independent checks ---------------------------------------------------------------------------------

    // An update changes each weight w by a rounding error of at most u |w|. With independent rounding errors,
    // the difference of two runs after n updates has the standard deviation sqrt(2 n / 3) u |w|. Six standard
    // deviations are enough for all 669 706 weights. (Rounding errors of the gradients, times the learning
    // rate, are smaller.) If the input of a ReLU is very close to 0, rounding decides the sign of the input,
    // and the image then changes the unit's weights in only one run. The bound also allows an eighth of an
    // update, so 8 of the 64 images may be affected.
    static double rounded(std::int64_t updates, double largest_weight) {
        const double u = double(std::numeric_limits<real>::epsilon()) / 2;
        return 6 * std::sqrt(2.0 / 3 * double(updates)) * u * largest_weight;
    }

    void check_tail(const Epoch& by_64, const Epoch& in_parts, std::int64_t train_images,
                    double bound) const {
        // Divides the last update by N, although the last update has fewer than N micro-batches.
        Weights by_rule = in_parts.before_the_tail;
        const double share = double(train_images % batch) / double(batch);
        for (std::size_t i = 0; i < by_rule.size(); ++i)
            for (std::size_t j = 0; j < by_rule[i].size(); ++j)
                by_rule[i][j] += real(share) * (in_parts.weights.back()[i][j] - by_rule[i][j]);
        if (share > 0) {
            const double unrepaired = apart(by_64.weights.back(), by_rule);
            check(say("a tail divided by {} all the same is seen", n), unrepaired > bound,
                  written("max|dw| would be %.1e", unrepaired));
        }
    }

    static void check_tested(const Tested& untrained, const Tested& after_64, const Tested& tested_in_parts,
                             std::int64_t images) {
        check("the loss has fallen", after_64.loss < untrained.loss);
        // An accuracy a on `images` images has the standard deviation sqrt(a (1 - a) / images). Two
        // accuracies may differ by chance by three standard deviations of their difference. This matters only
        // in short training runs with 64 to a few hundred images.
        const double a = untrained.accuracy, luck = 3 * std::sqrt(2 * a * (1 - a) / double(images));
        const bool many = images >= 1000;
        check(many ? "the accuracy has risen, by more than luck"
                   : "the accuracy has not fallen by more than luck",
              after_64.accuracy > untrained.accuracy + (many ? luck : -luck),
              written("luck is up to %.1f%%", 100 * luck));
        // A sum rounds at most 64 times in the type `real`, and all later additions are in double. The
        // tolerance also covers differences between matrix products of different sizes.
        check_close("loss of an image: the same in parts", tested_in_parts.loss, after_64.loss,
                    2 * roundings(64) * after_64.loss);
    }
};

const RegisterLesson<ARealTraining> lesson({.number = 16,
                                            .slug = "fashion",
                                            .title = "a real training",
                                            .minutes = 15,
                                            .steps = 6,
                                            .parameters = {one_of("micro", "micro-batches of an update of 64",
                                                                  4, {2, 4, 8, 16})}});

}  // namespace
