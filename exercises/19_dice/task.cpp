// Repair the gradients of a loss that is a ratio of two sums.
//
// The Dice loss is used for the segmentation of images. This loss is not a mean over pixels. It is one ratio of two
// sums over ALL pixels of all micro-batches, where p is the prediction and t is the truth of a pixel:
//
//     loss = 1 - 2 I / D,    I = sum of p * t,    D = sum of (p + t)
//     d loss / d p  =  -2 t / D  +  2 I / D^2
//
// Return the derivative d loss / d p for each pixel's prediction p, in the order of the micro-batches. The
// code below computes the sums I and D separately for each micro-batch, so its gradients belong to another
// loss.
//
// Example: two micro-batches have the predictions p = [0.9 0.2] and [0.6 0.1]. Both micro-batches have the
// truth t = [1 0]. Over all four pixels, the sum I is 1.5, and the sum D is 3.8.
//
// The question: when do you know the sums I and D over all micro-batches, and how often must you visit each
// micro-batch?
//
// Given:
//     struct Micro { std::vector<double> p, t; };   // p and t of each pixel, equally long
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
