// A Trainer trains a model on a data set for several epochs, with checkpoints, logs and a line of progress.
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

namespace detail {
// The options of a Trainer have the names that Hugging Face uses.
template <class S> struct TrainerOptions {
    std::int64_t per_device_batch_size = 8;  // items per micro-batch, except for the last one of an epoch
    // If memory runs out, the Trainer repeats the update with micro-batches of half the size, and keeps this
    // size. An update still has per_device_batch_size * gradient_accumulation_steps items. With this option,
    // checkpoints are written only between updates.
    bool auto_find_batch_size = false;
    AccumulationSteps gradient_accumulation_steps = 1;  // micro-batches per update, over all processes
    std::int64_t num_train_epochs = 1;
    std::uint64_t seed = 0;  // for the order of the items and the random numbers of the model
    bool shuffle = true;

    // Enables activation checkpointing (module.hpp). The value {} divides n layers into sqrt(n) segments.
    std::optional<Checkpointing> gradient_checkpointing = {};

    std::optional<double> max_grad_norm = {}, max_grad_value = {};
    std::optional<Schedule> schedule = {};  // if empty, keep the optimizer's learning rate
    MovingAverage<S>* average = nullptr;
    Weigh weigh = Weigh::counted;
    Sum sum = Sum::running;
    Tail tail = Tail::scale;  // with Tail::carry the last window may stay open
    NonFinite non_finite = NonFinite::raise;
    bool noise = false;  // estimate window().noise()

    // The Trainer saves its state in this file. A resumed run computes the same bits as an uninterrupted run.
    // The Trainer writes the file after every epoch, after every save_steps updates and after every
    // save_micro_batches micro-batches, even during an update. The value 0 turns off either option.
    std::string checkpoint = {};
    std::int64_t save_steps = 0, save_micro_batches = 0;
    bool resume_from_checkpoint = true;  // if the file exists; otherwise training starts from scratch

    // The Trainer writes a line to both metrics files and to `progress` after every logging_steps updates and
    // after the last update. A resumed run appends lines. The Trainer draws the loss curve after each epoch.
    std::int64_t logging_steps = 1;
    std::string metrics_csv = {}, metrics_jsonl = {}, loss_curve = {};
    std::ostream* progress = nullptr;
    bool terminal = false;  // each line of progress overwrites the previous one

    // If `frozen` is false, the constructor throws unless the optimizer updates all parameters of the model.
    bool frozen = false;
};

// Describes the result of evaluating a model on a data set. The result does not depend on the batch size.
struct Evaluation {
    double loss = 0, accuracy = 0;
    std::int64_t count = 0;  // the number of terms in the mean loss
};
}  // namespace detail

template <class S> class Trainer {
public:
    using Record = detail::TrainingRecord;
    using Summary = detail::TrainingTotals;
    using Options = detail::TrainerOptions<S>;
    using Evaluation = detail::Evaluation;
    using AccumulationSteps = detail::AccumulationSteps;

    // Runs the model on `items` in the forward pass `pass`, and returns the loss of these items.
    using LossFunction = std::function<Loss<Array<S>>(const Items& items, ForwardPass& pass)>;

    // Trains on a data set of `items` items. Resumes from the checkpoint if the file exists. Throws if an
    // option differs from the saved option (docs/options.md lists exceptions), or if a file cannot be
    // written. Resets the memory peak that summary() reports.
    //
    // With a reducer `across`, each process computes a part of the micro-batches, and all processes make the
    // same update as a single process. The first process writes all files. With a reducer, checkpoints are
    // written only between updates, and any number of processes can resume.
    Trainer(Module<S>& model, Optimizer<S>& optimizer, std::int64_t items, LossFunction loss,
            Options options = {}, detail::GradientReducer<S>* across = nullptr);

    bool train_epoch();  // trains to the end of the current epoch; returns false after the last epoch
    void train() {
        while (train_epoch()) {
        }
    }

    std::int64_t epoch() const { return epoch_; }  // number of complete epochs
    std::int64_t updates() const { return window_.updates(); }
    std::int64_t micro_batch_size() const { return size_.now(); }  // the size found by auto_find_batch_size
    Window<S>& window() { return window_; }
    const std::vector<Record>& records() const { return records_; }

    void save(const std::string& path) const;
    void load(const std::string& path);

    // Returns the mean of the loss over all items. Records no graph.
    static double evaluate(std::int64_t items, std::int64_t batch_size, const LossFunction& loss);
    // Computes the mean cross entropy and the accuracy of a classifier from its logits (items, classes).
    static Evaluation evaluate(const Array<std::int32_t>& labels, std::int64_t batch_size,
                               const std::function<Var<Array<S>>(const Items&)>& logits,
                               const detail::CrossEntropyOptions& options = {});

    Summary summary() const;
    void print_summary(std::ostream& out) const { out << to_string(summary()); }

private:
    using Clock = std::chrono::steady_clock;

    void require_same_parameters();
    void require_listed(std::vector<const Node*> read) const;
    void add(const Items& items);
    void micro_batch(const Items& items);
    bool in_whole_windows() const { return options_.auto_find_batch_size || across_; }
    void whole_window(const Items& order);
    void count_items(std::int64_t items, std::int64_t micro_batches);
    void on_window_end(const detail::WindowResult<S>& done);
    void log();
    void open_metrics();
    void save_if_due(bool updated);
    double seconds() const;
    Device device() const { return optimizer_.parameters()[0].value().device(); }

    Module<S>& model_;
    Optimizer<S>& optimizer_;
    std::int64_t items_;
    LossFunction loss_;
    Options options_;
    detail::GradientReducer<S>* across_;
    std::vector<std::pair<std::string, const void*>> stepped_;  // parameters that the optimizer steps
    Window<S> window_;
    MicroBatchSize size_;
    std::int64_t epoch_ = 0, position_ = 0;  // position_ counts the processed items of this epoch
    std::int64_t micro_batches_ = 0;         // of the whole training run
    std::vector<Record> records_;
    Record current_record_;        // updates since the last line of the log
    bool checked_listed_ = false;  // require_listed() has run in this epoch

    std::ofstream csv_, jsonl_;
    std::int64_t samples_ = 0, samples_since_ = 0, dropped_ = 0;
    double seconds_ = 0, logged_at_ = 0;
    std::optional<Clock::time_point> begun_;  // start of the current epoch
    std::size_t shown_ = 0;                   // width of the last line of progress
};

extern template class Trainer<float>;
extern template class Trainer<double>;

}  // namespace tally
