// Formats records of a training run as lines of CSV and JSON, a loss curve, a line of progress and a summary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace tally {

namespace detail {
// A TrainingRecord describes the updates of one line of the log.
struct TrainingRecord {
    std::int64_t update = 0;  // number of the last update, from 1
    double epoch = 0;         // number of epochs since the start, such as 1.25
    double sum = 0, count = 0;
    std::optional<double> norm = {};  // of the gradient before clipping; only with max_norm
    double learning_rate = 0, samples_per_second = 0;

    double loss() const { return sum / count; }
};

// These functions write each number with the fewest digits from which the same value can be read. In CSV the
// field of a missing norm is empty. JSON writes null for a missing norm, for an infinite number and for NaN.
std::string csv_head();
std::string csv_line(const TrainingRecord& record);
std::string json_line(const TrainingRecord& record);

// Draws a curve of the loss over the updates as a complete SVG file. Throws if no loss is finite.
std::string loss_curve_svg(std::span<const TrainingRecord> records, const std::string& title = "Loss");

struct Progress {
    std::int64_t epoch = 0, epochs = 0;  // number of the current epoch, from 1, and number of all epochs
    double done = 0;                     // completed part of the run, from 0 to 1
    TrainingRecord last;
    double samples_per_second = 0, seconds_left = 0;
};
// Returns a line such as "epoch 2/3 [####......] update 40, loss 0.4297 = 27.5/64, 1234/s, 1:12 left".
std::string progress_line(const Progress& progress);

// Stores the duration, the counts and the memory use of a training run.
struct TrainingTotals {
    double seconds = 0;
    std::int64_t epochs = 0, updates = 0;    // of the whole run
    std::int64_t samples = 0;                // of this process, like the following counts
    std::int64_t dropped_micro_batches = 0;  // dropped alone or with a whole window
    std::int64_t micro_batch_size = 0;       // largest number of items in a micro-batch
    std::int64_t retries = 0;                // how often memory ran out and an update was repeated
    std::size_t peak = 0;                    // peak of the bytes in use, including a data set in Arrays
    std::size_t peak_without_model = 0;      // the peak without parameters and gradients
    std::size_t saved = 0;                   // largest number of bytes saved for backward

    double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};
}  // namespace detail

// Returns the summary as two to four lines of text.
std::string to_string(const detail::TrainingTotals& summary);

}  // namespace tally
