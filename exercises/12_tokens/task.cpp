// A mean over tokens.
//
// Sentences have different lengths. In a micro-batch they are padded to the same length, and a mask says which places
// count. The loss is the mean over all TOKENS THAT COUNT, in all micro-batches of the window; the first micro-batch may
// have 900 of them, and the next one 10, or none.
//
// Return the gradient of that mean, 0 where none counts. What is written here takes each micro-batch's own mean, and then the mean of these:
// a mistake that large trainers shipped for years, until it was found in October 2024.
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
