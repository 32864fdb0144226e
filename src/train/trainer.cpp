// Implements the Trainer: the loop over epochs and micro-batches, its log and its checkpoints.
#include "tally/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "tally/base/write_file.hpp"
#include "tally/io/training_state.hpp"
#include "tally/memory/memory.hpp"
#include "tally/train/option_names.hpp"
#include "tally/train/state_reader.hpp"

namespace tally {
namespace {

constexpr std::int64_t record_width = 7;

template <class S> detail::WindowOptions<S> window_options(const detail::TrainerOptions<S>& o) {
    return {.micro_batches = o.gradient_accumulation_steps.at(0),
            .weigh = o.weigh,
            .sum = o.sum,
            .tail = o.tail,
            .non_finite = o.non_finite,
            .max_norm = o.max_grad_norm,
            .max_value = o.max_grad_value,
            .schedule = o.schedule,
            .average = o.average,
            .seed = o.seed,
            .noise = o.noise};
}

void require_at_least(const char* what, std::int64_t given, std::int64_t least) {
    if (given < least)
        throw Error(std::string("[trainer] ") + what + " must be at least " + std::to_string(least) + "; " +
                    std::to_string(given) + " is not");
}

template <class S> void require_files(const detail::TrainerOptions<S>& o) {
    if (o.checkpoint.empty() && (o.save_steps > 0 || o.save_micro_batches > 0))
        throw Error(std::string("[trainer] ") +
                    (o.save_steps > 0 ? "save_steps = " : "save_micro_batches = ") +
                    std::to_string(o.save_steps > 0 ? o.save_steps : o.save_micro_batches) +
                    " saves nothing without a checkpoint; name the file: .checkpoint = \"run.state\"");
    std::map<std::filesystem::path, const char*> taken;
    for (const auto& [option, path] :
         {std::pair("checkpoint", &o.checkpoint), std::pair("metrics_csv", &o.metrics_csv),
          std::pair("metrics_jsonl", &o.metrics_jsonl), std::pair("loss_curve", &o.loss_curve)}) {
        if (path->empty()) continue;
        std::error_code unknown;  // require_writable() reports a path that is not usable
        const auto file = std::filesystem::weakly_canonical(std::filesystem::absolute(*path), unknown);
        if (unknown) continue;
        if (const auto [other, first] = taken.emplace(file, option); !first)
            throw Error(std::string("[trainer] ") + other->second + " and " + option +
                        " name the same file, '" + *path + "'; name different files");
    }
}

// Returns the name and the node of each parameter of the model that the optimizer updates.
template <class S> std::vector<std::pair<std::string, const void*>> stepped_of(Module<S>& model,
                                                                               const Optimizer<S>& optimizer,
                                                                               bool frozen) {
    std::set<const void*> steps;
    for (const Var<Array<S>>& parameter : optimizer.parameters()) steps.insert(parameter.node());
    std::vector<std::pair<std::string, const void*>> stepped;
    std::string left;
    for (const auto& [name, parameter] : model.named_parameters())
        if (steps.count(parameter.node()) > 0)
            stepped.emplace_back(name, parameter.node());
        else
            left += (left.empty() ? "'" : ", '") + name + "'";
    if (stepped.empty())
        throw Error(
            "[trainer] the optimizer has no parameter of this model; make the optimizer from "
            "model.parameters() of the same model");
    if (!left.empty() && !frozen)
        throw Error("[trainer] the optimizer does not update the model's " + left +
                    "; make the optimizer from model.parameters() when the model is complete, or set "
                    ".frozen = true to train without these parameters");
    return stepped;
}

// Returns the options that affect the result of a training run. A resumed run must have the same options. The
// structured binding must name every option, so a new option causes a compile error here.
template <class S>
NamedOptions training_options(const detail::TrainerOptions<S>& options, std::int64_t items) {
    [[maybe_unused]] const auto& [per_device_batch_size, auto_find_batch_size, gradient_accumulation_steps,
                                  num_train_epochs, seed, shuffle, gradient_checkpointing, max_grad_norm,
                                  max_grad_value, schedule, average, weigh, sum, tail, non_finite, noise,
                                  checkpoint, save_steps, save_micro_batches, resume_from_checkpoint,
                                  logging_steps, metrics_csv, metrics_jsonl, loss_curve, progress, terminal,
                                  frozen] = options;
    return {{"items", std::to_string(items)},
            {"per_device_batch_size", std::to_string(per_device_batch_size)},
            {"gradient_accumulation_steps", gradient_accumulation_steps.to_text()},
            {"seed", std::to_string(seed)},
            {"shuffle", detail::to_text(shuffle)},
            {"max_grad_norm", detail::to_text(max_grad_norm)},
            {"max_grad_value", detail::to_text(max_grad_value)},
            {"schedule", schedule ? "given" : "none"},
            {"average", average ? "given" : "none"},
            {"weigh", detail::to_text(weigh)},
            {"sum", detail::to_text(sum)},
            {"tail", detail::to_text(tail)},
            {"non_finite", detail::to_text(non_finite)}};
}

Array<double> as_array(const std::vector<detail::TrainingRecord>& records) {
    std::vector<double> numbers;
    for (const detail::TrainingRecord& r : records)
        for (const double number : {static_cast<double>(r.update), r.epoch, r.sum, r.count,
                                    r.norm.value_or(-1), r.learning_rate, r.samples_per_second})
            numbers.push_back(number);
    return Array<double>({static_cast<std::int64_t>(records.size()), record_width}, numbers);
}

std::vector<detail::TrainingRecord> as_records(const StateReader& saved, const Array<double>& numbers) {
    if (numbers.shape().rank() != 2 || numbers.shape()[1] != record_width)
        saved.fail("records of " + to_string(numbers.shape()) + "; (n, 7) expected");
    std::vector<detail::TrainingRecord> records;
    for (const double* r = numbers.span().data();
         records.size() < static_cast<std::size_t>(numbers.shape()[0]); r += record_width) {
        if (!(r[0] >= 0 && r[0] <= 0x1p53) || std::floor(r[0]) != r[0])
            saved.fail("a record of update " + detail::to_text(r[0]));
        records.push_back({static_cast<std::int64_t>(r[0]), r[1], r[2], r[3],
                           r[4] == -1 ? std::nullopt : std::optional(r[4]), r[5], r[6]});
    }
    return records;
}

}  // namespace

template <class S>
Trainer<S>::Trainer(Module<S>& model, Optimizer<S>& optimizer, std::int64_t items, LossFunction loss,
                    detail::TrainerOptions<S> options, detail::GradientReducer<S>* across)
    : model_(model),
      optimizer_(optimizer),
      items_(items),
      loss_(std::move(loss)),
      options_(std::move(options)),
      across_(across),
      window_(optimizer, window_options(options_), across, training_options(options_, items)),
      size_(std::max<std::int64_t>(options_.per_device_batch_size, 1)) {
    require_at_least("the number of items", items, 1);
    require_at_least("per_device_batch_size", options_.per_device_batch_size, 1);
    require_at_least("num_train_epochs", options_.num_train_epochs, 0);
    require_at_least("logging_steps", options_.logging_steps, 1);
    require_at_least("save_steps", options_.save_steps, 0);
    require_at_least("save_micro_batches", options_.save_micro_batches, 0);
    if (!loss_) throw Error("[trainer] the loss function is empty; pass a function that returns a Loss");
    if (options_.gradient_checkpointing && checkpoint(model_, *options_.gradient_checkpointing) == 0)
        throw Error(
            "[trainer] gradient_checkpointing: the model has no Sequential that could be cut into segments");
    if (in_whole_windows()) {
        const auto refuse = [this](const std::string& what) {
            throw Error(std::string("[trainer] ") +
                        (across_ ? "several processes" : "the option auto_find_batch_size") +
                        " cannot divide a window: " + what);
        };
        if (options_.tail == Tail::carry)
            refuse("Tail::carry does not work; choose Tail::scale or Tail::drop");
        if (options_.save_micro_batches > 0) refuse("save_micro_batches does not work; choose save_steps");
        if (options_.auto_find_batch_size && across_)
            refuse("auto_find_batch_size would repeat the window in one process only");
        if (options_.auto_find_batch_size && options_.weigh == Weigh::micro_batches)
            refuse("Weigh::micro_batches needs a number of micro-batches that does not depend on memory");
    }
    require_files(options_);
    stepped_ = stepped_of(model, optimizer, options_.frozen);
    const std::string before = options_.checkpoint;
    if (across_ && !across_->writes_files()) {  // the main process writes the files
        for (std::string* path :
             {&options_.checkpoint, &options_.metrics_csv, &options_.metrics_jsonl, &options_.loss_curve})
            path->clear();
        options_.progress = nullptr;
    }
    for (const std::string* path :
         {&options_.checkpoint, &options_.metrics_csv, &options_.metrics_jsonl, &options_.loss_curve})
        if (!path->empty()) require_writable(*path);  // now, so that a wrong path does not waste an epoch
    if (!before.empty() && options_.resume_from_checkpoint && file_exists(before)) load(before);
    memory::reset_peak(device());
}

// ---- the loop ----

template <class S> bool Trainer<S>::train_epoch() {
    if (epoch_ >= options_.num_train_epochs) return false;
    require_same_parameters();
    checked_listed_ = false;
    open_metrics();
    begun_ = Clock::now();
    window_.plan_micro_batches(in_whole_windows() ? 0 : options_.gradient_accumulation_steps.at(epoch_));
    if (window_.full()) on_window_end(window_.finish());  // the previous epoch had planned more micro-batches
    const Items order =
        options_.shuffle ? Items::shuffled(items_, options_.seed, epoch_) : Items::in_order(items_);
    while (position_ < items_)
        if (in_whole_windows())
            whole_window(order);
        else
            micro_batch(order.part(position_, std::min(items_, position_ + options_.per_device_batch_size)));
    on_window_end(window_.flush());
    ++epoch_;
    position_ = 0;
    const bool drawable =
        std::any_of(records_.begin(), records_.end(), [](const auto& r) { return std::isfinite(r.loss()); });
    if (!options_.loss_curve.empty() && drawable)
        write_file_atomically(options_.loss_curve, detail::loss_curve_svg(records_));
    // Saves the checkpoint after the other files, so that a resumed run finds the other files complete.
    if (!options_.checkpoint.empty()) save(options_.checkpoint);
    // Logs the last updates after save(), so that a resumed run logs these updates again.
    if (epoch_ >= options_.num_train_epochs && current_record_.count > 0) log();
    if (options_.progress && options_.terminal && shown_ > 0) {
        *options_.progress << "\n" << std::flush;
        shown_ = 0;
    }
    seconds_ = seconds();
    begun_.reset();
    return true;
}

// Throws if a parameter of the model was replaced, because the optimizer updates the old parameter.
template <class S> void Trainer<S>::require_same_parameters() {
    std::map<std::string, const void*> now;
    for (const auto& [name, parameter] : model_.named_parameters()) now[name] = parameter.node();
    for (const auto& [name, node] : stepped_)
        if (const auto found = now.find(name); found == now.end() || found->second != node)
            throw Error("[trainer] the model's parameter '" + name +
                        "' was replaced by a new parameter, which the optimizer does not update; "
                        "write parameter.assign(numbers) instead, or make a new optimizer and Trainer");
    if (!options_.frozen && now.size() > stepped_.size())
        throw Error("[trainer] the optimizer updates " + std::to_string(stepped_.size()) +
                    " of the model's " + std::to_string(now.size()) +
                    " parameters; make the optimizer when the model is complete, or set .frozen = true");
}

// Throws if the loss depends on a parameter that the model does not list, because it would not be trained.
template <class S> void Trainer<S>::require_listed(std::vector<const Node*> waiting) const {
    std::set<const Node*> known, seen;
    for (const auto& [name, parameter] : model_.named_parameters()) known.insert(parameter.node());
    for (const Var<Array<S>>& parameter : optimizer_.parameters()) known.insert(parameter.node());
    while (!waiting.empty()) {
        const Node* const node = waiting.back();
        waiting.pop_back();
        if (!node || !seen.insert(node).second) continue;
        if (node->state == detail::State::leaf && known.count(node) == 0)
            throw Error("[trainer] the loss depends on a parameter of " +
                        detail::describe(static_cast<const detail::ValueNode<Array<S>>*>(node)->value) +
                        " that the model does not list, so it would not be trained; name it in its module's "
                        "list(), or set .frozen = true to leave the parameter as it is");
        for (const Node* input : node->inputs()) waiting.push_back(input);
    }
}

template <class S> void Trainer<S>::add(const Items& items) {
    std::vector<const Node*> read;
    const bool check = !std::exchange(checked_listed_, true) && !options_.frozen;  // once per epoch
    const Loss<Array<S>> loss = [&] {
        const detail::ScopedValue reading(detail::parameters_read, check ? &read : nullptr);
        return loss_(items, window_.begin_micro_batch(items.count()));
    }();
    read.push_back(loss.sum.node());
    if (check) require_listed(std::move(read));
    window_.add(loss);
}

template <class S> void Trainer<S>::micro_batch(const Items& items) {
    add(items);
    count_items(items.count(), 1);
    const std::int64_t before = window_.updates();
    if (window_.full()) on_window_end(window_.finish());
    save_if_due(window_.updates() > before);
}

template <class S> void Trainer<S>::count_items(std::int64_t items, std::int64_t micro_batches) {
    position_ += items;
    samples_ += items;
    samples_since_ += items;
    micro_batches_ += micro_batches;
}

template <class S> void Trainer<S>::whole_window(const Items& order) {
    const std::int64_t steps = options_.gradient_accumulation_steps.at(epoch_),
                       size = options_.per_device_batch_size;
    const Items items = order.part(position_, std::min(items_, position_ + size * steps));
    if (options_.tail == Tail::drop && items.count() <= size * (steps - 1)) {  // too few items for all steps
        dropped_ += (items.count() + size - 1) / size;
        position_ += items.count();
        return;
    }
    const auto fill = [&](std::int64_t max_items) {
        for (const Items& micro : window_.share(split(items, max_items))) add(micro);
    };
    if (across_) fill(size);
    const auto done = across_ ? window_.finish() : size_.update(window_, items.count(), fill);
    count_items(items.count(), done.micro_batches);
    on_window_end(done);
    save_if_due(done.stepped);
}

template <class S> void Trainer<S>::save_if_due(bool updated) {
    const auto due = [](std::int64_t count, std::int64_t every) { return every > 0 && count % every == 0; };
    if (options_.checkpoint.empty()) return;
    if ((updated && due(window_.updates(), options_.save_steps)) ||
        due(micro_batches_, options_.save_micro_batches))
        save(options_.checkpoint);
}

template <class S> void Trainer<S>::on_window_end(const detail::WindowResult<S>& done) {
    if (!done.stepped) {
        if (window_.micro_batches() == 0) dropped_ += done.micro_batches;
        return;
    }
    dropped_ += done.dropped;
    current_record_.sum += static_cast<double>(done.loss_sum.item());
    current_record_.count += done.count;
    current_record_.norm = done.norm;
    if (window_.updates() % options_.logging_steps == 0) log();
}

// ---- the log ----

template <class S> double Trainer<S>::seconds() const {
    return seconds_ + (begun_ ? std::chrono::duration<double>(Clock::now() - *begun_).count() : 0);
}

// Rewrites the log files, because a killed process may have logged updates after its last checkpoint.
template <class S> void Trainer<S>::open_metrics() {
    const auto open = [&](const std::string& path, std::ofstream& file, std::string text, auto line) {
        if (path.empty() || file.is_open()) return;
        for (const detail::TrainingRecord& record : records_) text += line(record);
        write_file_atomically(path, text);
        file.open(path, std::ios::app);
        if (!file) throw Error("[trainer] cannot write '" + path + "'");
    };
    open(options_.metrics_csv, csv_, detail::csv_head(), detail::csv_line);
    open(options_.metrics_jsonl, jsonl_, "", detail::json_line);
}

template <class S> void Trainer<S>::log() {
    const double now = seconds(), passed = now - logged_at_;
    current_record_.update = window_.updates();
    current_record_.epoch =
        static_cast<double>(epoch_) + static_cast<double>(position_) / static_cast<double>(items_);
    current_record_.learning_rate = optimizer_.learning_rate();
    current_record_.samples_per_second = passed > 0 ? static_cast<double>(samples_since_) / passed : 0;
    logged_at_ = now;
    samples_since_ = 0;
    records_.push_back(std::exchange(current_record_, {}));
    const detail::TrainingRecord& record = records_.back();
    if (csv_.is_open() && !(csv_ << detail::csv_line(record) << std::flush))
        throw Error("[trainer] cannot write '" + options_.metrics_csv + "'");
    if (jsonl_.is_open() && !(jsonl_ << detail::json_line(record) << std::flush))
        throw Error("[trainer] cannot write '" + options_.metrics_jsonl + "'");
    if (!options_.progress) return;
    const double rate = summary().samples_per_second(),
                 epochs = static_cast<double>(options_.num_train_epochs);
    const double left = (epochs - record.epoch) * static_cast<double>(items_);
    const std::string line = detail::progress_line({.epoch = std::min(epoch_ + 1, options_.num_train_epochs),
                                                    .epochs = options_.num_train_epochs,
                                                    .done = record.epoch / epochs,
                                                    .last = record,
                                                    .samples_per_second = rate,
                                                    .seconds_left = rate > 0 ? left / rate : 0});
    if (options_.terminal) {
        const std::size_t before = std::exchange(shown_, line.size());
        *options_.progress << "\r" << line << std::string(before > shown_ ? before - shown_ : 0, ' ')
                           << std::flush;
    } else {
        *options_.progress << line << "\n";
    }
}

template <class S> detail::TrainingTotals Trainer<S>::summary() const {
    const memory::Report report = memory::report(device());
    const auto peak = [&](MemoryClass row) { return report.peak_by[static_cast<std::size_t>(row)]; };
    const std::size_t kept = peak(MemoryClass::parameter) + peak(MemoryClass::gradient);
    return {.seconds = seconds(),
            .epochs = epoch_,
            .updates = window_.updates(),
            .samples = samples_,
            .dropped_micro_batches = dropped_,
            .micro_batch_size = size_.now(),
            .retries = size_.retries(),
            .peak = report.peak,
            .peak_without_model = report.peak - std::min(report.peak, kept),
            .saved = peak(MemoryClass::saved)};
}

// ---- checkpoints ----

template <class S> void Trainer<S>::save(const std::string& path) const {
    TrainingState state;
    for (auto& [name, value] : training_options(options_, items_))
        state.put("trainer/options/" + name, value);
    state.put("trainer/epoch", epoch_);
    state.put("trainer/position", position_);
    state.put("trainer/micro_batches", micro_batches_);
    state.put("trainer/micro_batch_size", size_.now());
    state.put("trainer/retries", size_.retries());
    state.put("trainer/records", as_array(records_));
    state.put("trainer/since", as_array({current_record_}));
    window_.save(state, "window", &model_);
    state.save(path);
}

template <class S> void Trainer<S>::load(const std::string& path) {
    const TrainingState state = TrainingState::load(path);
    StateReader saved("trainer", state, "trainer");
    for (const auto& [name, here] : training_options(options_, items_))
        if (const auto& before = saved.get<std::string>("options/" + name); before != here)
            saved.fail("'" + path + "' was saved with " + name + " " + before + ", here it is " + here);
    auto records = as_records(saved, saved.get<Array<double>>("records"));
    const auto since = as_records(saved, saved.get<Array<double>>("since"));
    const std::int64_t epoch = saved.count("epoch"), position = saved.count("position"),
                       micro_batches = saved.count("micro_batches"),
                       found = saved.count("micro_batch_size", options_.per_device_batch_size),
                       retries = saved.count("retries");
    const MicroBatchSize size(found, retries);
    if (in_whole_windows() && state.get<std::int64_t>("window/micro_batches") > 0)
        throw Error("[trainer] '" + path + "' was saved in the middle of a window; resume " +
                    (across_ ? "in a single process" : "without auto_find_batch_size") +
                    " until the next checkpoint");
    if (since.size() != 1 || position > items_)
        throw Error("[trainer] '" + path + "' was saved after item " + std::to_string(position) +
                    " of an epoch, but an epoch has only " + std::to_string(items_) + " items");
    saved.require_all_read();
    // Passes no planned number of micro-batches, because the epoch determines this number.
    const detail::ApplyState window = window_.validate_state(state, "window", &model_, std::nullopt);
    // All checks have passed, so the following statements do not throw.
    window();
    epoch_ = epoch;
    position_ = position;
    micro_batches_ = micro_batches;
    if (options_.auto_find_batch_size) size_ = size;
    records_ = std::move(records);
    current_record_ = since[0];
}

// ---- evaluation ----

namespace {

template <class Visit> void in_batches(std::int64_t items, std::int64_t batch_size, Visit visit) {
    if (items < 1) throw Error("[Trainer::evaluate] the data set has no items; give at least one");
    const NoGrad off;
    for (const Items& batch : split(Items::in_order(items), batch_size)) visit(batch);
}

double mean(double sum, double count) {
    return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

template <class S>
double Trainer<S>::evaluate(std::int64_t items, std::int64_t batch_size, const LossFunction& loss) {
    double sum = 0, count = 0;
    in_batches(items, batch_size, [&](const Items& batch) {
        ForwardPass pass;
        const Loss<Array<S>> found = loss(batch, pass);
        sum += static_cast<double>(found.sum.item());
        count += static_cast<double>(found.count.item());
    });
    return mean(sum, count);
}

template <class S>
typename Trainer<S>::Evaluation Trainer<S>::evaluate(const Array<std::int32_t>& labels,
                                                     std::int64_t batch_size,
                                                     const std::function<Var<Array<S>>(const Items&)>& logits,
                                                     const detail::CrossEntropyOptions& options) {
    double sum = 0, right = 0, count = 0;
    in_batches(labels.shape().rank() == 1 ? labels.shape()[0] : 0, batch_size, [&](const Items& batch) {
        const Var<Array<S>> y = logits(batch);
        const Array<std::int32_t> wanted = rows(labels, batch);
        const Loss<Array<S>> found = cross_entropy(y, wanted.to(y.value().device()), options);
        sum += static_cast<double>(found.sum.item());
        count += static_cast<double>(found.count.item());
        const std::vector<S> scores = y.value().to_vector();
        const auto classes = static_cast<std::ptrdiff_t>(y.shape()[1]);
        for (std::size_t row = 0; row < wanted.size(); ++row) {
            if (wanted.span()[row] == options.ignore) continue;
            const auto first = scores.begin() + static_cast<std::ptrdiff_t>(row) * classes;
            right += std::max_element(first, first + classes) - first == wanted.span()[row];
        }
    });
    return {mean(sum, count), mean(right, count), static_cast<std::int64_t>(count)};
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace tally
