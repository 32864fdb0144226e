// Repair a mean over the tokens of several micro-batches.
//
// Sentences have different lengths. A micro-batch pads its rows to the same length, and a mask marks the
// tokens that count. The loss is the mean over all TOKENS THAT COUNT, in all micro-batches of an update. One
// micro-batch can have 900 of these tokens, and the next can have 10, or none.
//
// Return the gradient of the mean loss over the tokens that count, or 0 if no token counts. The code below
// computes the mean of each micro-batch, and then the mean of these means. Large training libraries
// contained this mistake for years. The mistake was found in October 2024.
//
// Example: the four tokens of one micro-batch have the gradients 1 2 3 6, and the only token of another
// has the gradient 8. The right result is 20 / 5 = 4. The code below returns (3 + 8) / 2 = 5.5.
//
// The question: by which number must the gradient of each token be divided?
//
// Given:
//     struct Row {
//         std::vector<double> gradients;  // one number for each place of the row, also for padding
//         std::vector<int> mask;          // 1 if the token counts, 0 if not
//     };
//     using Micro = std::vector<Row>;
#include "given.hpp"

double gradient(const std::vector<Micro>& micros) {
    double sum_of_means = 0;
    for (const Micro& micro : micros) {
        double sum = 0, tokens = 0;
        for (const Row& row : micro)
            for (std::size_t i = 0; i < row.mask.size(); ++i) {
                sum += row.mask[i] * row.gradients[i];
                tokens += row.mask[i];
            }
        sum_of_means += sum / tokens;
    }
    return sum_of_means / static_cast<double>(micros.size());
}
