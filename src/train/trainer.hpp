// Trainer: epochs of windows over a data set, with checkpoints, metrics and a line of progress.
//
//     Trainer<float> trainer(model, optimizer, data.count(), [&](const Items& items, ForwardPass& pass) {
//         return cross_entropy(model(constant(rows(data.images, items)), pass), rows(data.labels, items));
//     }, {.per_device_batch_size = 16, .gradient_accumulation_steps = 4, .checkpoint = "run.state"});
//     trainer.train();
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tally/train/accumulation_steps.hpp"
#include "tally/train/batches.hpp"
#include "tally/train/micro_batch.hpp"
#include "tally/train/training_log.hpp"
#include "tally/train/window.hpp"

namespace tally {

// Of Trainer, under the names that Hugging Face gives them.
template <class S> struct TrainerOptions {
    std::int64_t per_device_batch_size = 8;  // items a micro-batch; an epoch's last may have fewer
    // Where memory runs out, the same window is tried again with half of them, which stays. An update has
    // per_device_batch_size * gradient_accumulation_steps items all the same. Checkpoints are then made
    // between windows only.
    bool auto_find_batch_size = false;
    AccumulationSteps gradient_accumulation_steps = 1;  // micro-batches an update, of all processes together
    std::int64_t num_train_epochs = 1;
    std::uint64_t seed = 0;  // of the order of the items, and of what is random in the model
    bool shuffle = true;

    // The model's chains of layers are checkpointed (module.hpp): {} in the square root of their layers.
    std::optional<Checkpointing> gradient_checkpointing = {};

    std::optional<double> max_grad_norm = {}, max_grad_value = {};
    std::optional<Schedule> schedule = {};  // without it the optimizer's own learning rate stays
    MovingAverage<S>* average = nullptr;
    Weigh weigh = Weigh::counted;
    Sum sum = Sum::running;
    Tail tail = Tail::scale;  // carried beyond the last epoch, a window stays open
    NonFinite non_finite = NonFinite::raise;
    bool noise = false;  // window().noise() is estimated

    // A file of all that is needed to go on with the same bits. It is written at the end of every epoch, and
    // after every so many updates and micro-batches (0: not for these), also in the middle of a window.
    std::string checkpoint = {};
    std::int64_t save_steps = 0, save_micro_batches = 0;
    bool resume_from_checkpoint = true;  // where the file is there; otherwise training begins anew

    // The Trainer writes a line to each named file and to `progress` after every so many updates and after the last. A
    // resumed training appends. The picture is drawn at the end of every epoch.
    std::int64_t logging_steps = 1;
    std::string metrics_csv = {}, metrics_jsonl = {}, loss_curve = {};
    std::ostream* progress = nullptr;
    bool terminal = false;  // progress is written over the line before

    // Allows an optimizer that does not step all parameters of the model; without it that is an Error.
    bool frozen = false;
};

template <class S> class Trainer {
public:
    // The loss over some items of the data set. Whatever is random or counted in the model asks the pass.
    using LossOf = std::function<Loss<Array<S>>(const Items& items, ForwardPass& pass)>;

    // Over a data set of so many items. Takes up training where a checkpoint left it; one that was saved with
    // other options is an Error that names the option and both values (docs/options.md lists those that may
    // differ). A file that could not be written is an Error now. Begins to measure the ledger's peak.
    //
    // Shared `across` processes, each computes its part of an update's micro-batches, and the update stays what it
    // is in one process. The first of them writes all files; checkpoints are made between windows only, and may be
    // resumed by any number of processes that read the same file.
    Trainer(Module<S>& model, Optimizer<S>& optimizer, std::int64_t items, LossOf loss,
            TrainerOptions<S> options = {}, detail::GradientReducer<S>* across = nullptr);

    bool train_epoch();  // to the end of the epoch that is on its way; false when all are done
    void train() {
        while (train_epoch()) {
        }
    }

    std::int64_t epoch() const { return epoch_; }  // those that have passed
    std::int64_t updates() const { return window_.updates(); }
    std::int64_t micro_batch_size() const { return size_.now(); }  // what auto_find_batch_size has found
    Window<S>& window() { return window_; }
    const std::vector<UpdateRecord>& records() const { return records_; }

    void save(const std::string& path) const;
    void load(const std::string& path);

    TrainingSummary summary() const;
    void print_summary(std::ostream& out) const { out << to_string(summary()); }

private:
    using Clock = std::chrono::steady_clock;

    void expect_same_parameters();
    void expect_listed(std::vector<const Node*> read) const;
    void add(const Items& items);
    void micro_batch(const Items& items);
    bool in_whole_windows() const { return options_.auto_find_batch_size || across_; }
    void whole_window(const Items& order);
    void count_items(std::int64_t items, std::int64_t micro_batches);
    void on_window_end(const UpdateResult<S>& done);
    void log();
    void open_metrics();
    void save_if_due(bool updated);
    double seconds() const;
    Device device() const { return optimizer_.parameters()[0].value().device(); }

    Module<S>& model_;
    Optimizer<S>& optimizer_;
    std::int64_t items_;
    LossOf loss_;
    TrainerOptions<S> options_;
    detail::GradientReducer<S>* across_;
    std::vector<std::pair<std::string, const void*>> stepped_;  // of the model's parameters, by name
    Window<S> window_;
    MicroBatchSize size_;
    std::int64_t epoch_ = 0, position_ = 0;  // how many items of this epoch have come
    std::int64_t micro_batches_ = 0;         // of the whole training
    std::vector<UpdateRecord> records_;
    UpdateRecord current_record_;  // the last record
    bool looked_ = false;          // for a parameter that the model does not list

    std::ofstream csv_, jsonl_;
    std::int64_t samples_ = 0, samples_since_ = 0, dropped_ = 0;
    double seconds_ = 0, logged_at_ = 0;
    std::optional<Clock::time_point> begun_;  // while an epoch is on its way
    std::size_t shown_ = 0;                   // columns of the line of progress
};

// What a model is worth on a data set, item by item, however it is cut into batches; nothing is recorded.
struct Evaluation {
    double loss = 0, accuracy = 0;
    std::int64_t count = 0;  // what the loss is the mean of
};

// The mean of a loss over so many items.
template <class S>
double evaluate(std::int64_t items, std::int64_t batch_size, const typename Trainer<S>::LossOf& loss);

// Of a classifier, by its logits (items, classes); with the options of its loss.
template <class S> Evaluation evaluate(const Array<std::int32_t>& labels, std::int64_t batch_size,
                                       const std::function<Var<Array<S>>(const Items&)>& logits,
                                       const CrossEntropyOptions& options = {});

extern template class Trainer<float>;
extern template class Trainer<double>;

}  // namespace tally
