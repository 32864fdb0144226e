// How training went, update by update, and how that is shown: lines of CSV and JSON, a picture of the loss, a
// line of progress, a summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tally {

// An update, or the updates since the last one that was logged.
struct UpdateRecord {
    std::int64_t update = 0;  // its number, from 1
    double epoch = 0;         // how many have passed: 1.25
    double sum = 0, count = 0;
    std::optional<double> norm = {};  // of the gradient before clipping, where it was asked for
    double learning_rate = 0, samples_per_second = 0;

    double loss() const { return sum / count; }
};

namespace detail {
// Numbers are as short as they read back; in CSV what is not there is empty, in JSON it is null, and so is
// what is no number.
std::string csv_head();
std::string csv_line(const UpdateRecord& record);
std::string json_line(const UpdateRecord& record);

// The loss over the updates, as an SVG picture that stands alone. An Error where no loss is a finite number.
std::string loss_curve_svg(std::span<const UpdateRecord> records, const std::string& title = "Loss");

// How far a training is.
struct Progress {
    std::int64_t epoch = 0, epochs = 0;  // of which one is on its way, from 1
    double done = 0;                     // of the whole, from 0 to 1
    UpdateRecord last;
    double samples_per_second = 0, seconds_left = 0;
};
// epoch 2/3 [####......] update 40, loss 0.4297 = 27.5/64, 1234/s, 1:12 left
std::string progress_line(const Progress& progress);
}  // namespace detail

// What training has taken in this process.
struct TrainingSummary {
    double seconds = 0;
    std::int64_t epochs = 0, updates = 0;    // of the whole training
    std::int64_t samples = 0;                // of this process, like the following
    std::int64_t dropped_micro_batches = 0;  // alone or with their window
    std::int64_t micro_batch_size = 0;       // items at most
    std::int64_t retries = 0;                // of windows for which memory had run out, in the whole training
    std::size_t peak = 0;                    // bytes in the ledger at most: with the data set, if it is there
    std::size_t peak_without_model = 0;      // without parameters and gradients
    std::size_t saved = 0;                   // at most kept for backward

    double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

// In two to four lines.
std::string to_string(const TrainingSummary& summary);

}  // namespace tally
