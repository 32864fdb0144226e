// A loss that is a ratio.
//
// The Dice loss of a segmentation is no mean over pixels, it is one ratio of two sums over all of them:
//
//     loss = 1 - 2 I / D,    I = sum of p * t,    D = sum of (p + t)
//
// A mean of the micro-batches' ratios is another loss. Still, accumulation can be exact: go over the micro-batches
// twice, the first time for the two sums alone, the second time for the gradients. By the rule of quotients
//
//     d loss / d p  =  -2 t / D  +  2 I / D^2
//
// Return that for each pixel. Here I and D are those of one micro-batch, not of all.
#include "given.hpp"

std::vector<double> dice_gradients(const std::vector<Micro>& micros) {
    std::vector<double> gradients;
    for (const Micro& micro : micros) {
        double I = 0, D = 0;
        for (std::size_t i = 0; i < micro.p.size(); ++i) {
            I += micro.p[i] * micro.t[i];
            D += micro.p[i] + micro.t[i];
        }
        for (double t : micro.t) gradients.push_back(-2 * t / D + 2 * I / (D * D));
    }
    return gradients;
}
