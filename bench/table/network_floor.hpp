// Trains a multilayer perceptron without autograd. Calls BLAS for matrix products, and computes all other
// operations in fused loops.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bench/table/aligned.hpp"
#include "bench/table/problems.hpp"
#include "bench/table/row.hpp"

namespace tally::bench {

// Holds the weights and gradients of a layer. For a micro-batch, also holds the layer's output and the
// gradient of the output.
class FloorLayer {
public:
    FloorLayer(std::int64_t rows, std::int64_t in, std::int64_t out, const std::vector<float>& weight,
               const std::vector<float>& bias)
        : w(weight),
          b(bias),
          dw(weight.size()),
          db(bias.size()),
          y(rows * out),
          dy(rows * out),
          rows_(static_cast<int>(rows)),
          in_(static_cast<int>(in)),
          out_(static_cast<int>(out)) {}

    Aligned w, b, dw, db, y, dy;

    void forward(const float* x, bool relu) {
        if (rows_ == 1)
            cblas_sgemv(CblasRowMajor, CblasTrans, in_, out_, 1, w, out_, x, 1, 0, y, 1);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows_, out_, in_, 1, x, in_, w, out_, 0, y,
                        out_);
        add_bias(relu);
    }
    // Adds dy to the bias's gradient. If `relu` is true, first sets dy to 0 where ReLU's output is 0.
    void mask_and_bias(bool relu, bool first) {
        float* __restrict sum = db;
        if (first) std::fill_n(sum, out_, 0.f);
        for (int r = 0; r < rows_; ++r) {
            float* __restrict d = dy + r * out_;
            const float* __restrict value = y + r * out_;
            if (relu)
                for (int j = 0; j < out_; ++j) sum[j] += d[j] = value[j] > 0 ? d[j] : 0.f;
            else
                for (int j = 0; j < out_; ++j) sum[j] += d[j];
        }
    }
    void back_to_weights(const float* x, bool first) {
        if (rows_ > 1)
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in_, out_, rows_, 1, x, in_, dy, out_,
                        first ? 0 : 1, dw, out_);
        else if (first)
            set_outer(x);
        else
            cblas_sger(CblasRowMajor, in_, out_, 1, x, 1, dy, 1, dw, out_);
    }
    void back_to_input(float* dx) {
        if (rows_ == 1)
            cblas_sgemv(CblasRowMajor, CblasNoTrans, in_, out_, 1, w, out_, dy, 1, 0, dx, 1);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows_, in_, out_, 1, dy, out_, w, out_, 0,
                        dx, in_);
    }
    void step(float rate) {
        descend(w, dw, in_ * out_, rate);
        descend(b, db, out_, rate);
    }

private:
    void add_bias(bool relu) {
        const float* __restrict bias = b;
        for (int r = 0; r < rows_; ++r) {
            float* __restrict row = y + r * out_;
            if (relu)
                for (int j = 0; j < out_; ++j) row[j] = std::max(row[j] + bias[j], 0.f);
            else
                for (int j = 0; j < out_; ++j) row[j] += bias[j];
        }
    }
    void set_outer(const float* x) {
        const float* __restrict d = dy;
        for (int i = 0; i < in_; ++i) {
            float* __restrict to = dw + i * out_;
            for (int j = 0; j < out_; ++j) to[j] = x[i] * d[j];
        }
    }
    static void descend(float* __restrict value, const float* __restrict gradient, int n, float rate) {
        for (int i = 0; i < n; ++i) value[i] -= rate * gradient[i];
    }

    int rows_, in_, out_;
};

class FloorNetwork {
public:
    explicit FloorNetwork(const Mlp& mlp) : mlp_(mlp), pictures_(mlp.pictures()), labels_(mlp.labels()) {
        for (std::size_t i = 0; i < mlp.layers(); ++i)
            layers_.emplace_back(mlp.micro, mlp.sizes[i], mlp.sizes[i + 1], mlp.weight(i), mlp.bias(i));
    }
    void gradients(const float* pictures, const std::int32_t* labels, std::int64_t rows) {
        for (std::int64_t from = 0; from < rows; from += mlp_.micro)
            pass(pictures + from * mlp_.sizes[0], labels + from, rows, from == 0);
    }
    void gradients() { gradients(pictures_, labels_.data(), mlp_.rows); }
    void step() {
        for (FloorLayer& layer : layers_) layer.step(mlp_.rate);
    }
    void update() {
        gradients();
        step();
    }
    // Makes one update for every `rows` pictures. The last update may have fewer micro-batches.
    void epoch(const float* pictures, const std::int32_t* labels, std::int64_t count) {
        for (std::int64_t from = 0; from < count; from += mlp_.rows) {
            gradients(pictures + from * mlp_.sizes[0], labels + from, std::min(mlp_.rows, count - from));
            step();
        }
    }
    Numbers numbers() {  // gradients, and weights after an update
        gradients();
        Numbers all;
        for (const FloorLayer& layer : layers_)
            all.push_back(layer.dw.doubles()), all.push_back(layer.db.doubles());
        update();
        for (const std::vector<double>& numbers_of_one : weights()) all.push_back(numbers_of_one);
        return all;
    }
    Numbers weights() const {
        Numbers all;
        for (const FloorLayer& layer : layers_)
            all.push_back(layer.w.doubles()), all.push_back(layer.b.doubles());
        return all;
    }
    float loss = 0;

private:
    void pass(const float* pictures, const std::int32_t* labels, std::int64_t rows, bool first) {
        const float* x = pictures;
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            layers_[l].forward(x, l + 1 < layers_.size());
            x = layers_[l].y;
        }
        loss_and_gradient(labels, rows);
        for (std::size_t l = layers_.size(); l-- > 0;) {
            layers_[l].mask_and_bias(l + 1 < layers_.size(), first);
            layers_[l].back_to_weights(l > 0 ? layers_[l - 1].y : pictures, first);
            if (l > 0) layers_[l].back_to_input(layers_[l - 1].dy);
        }
    }
    // Computes softmax, cross-entropy and the gradient of the mean over all rows of the update.
    void loss_and_gradient(const std::int32_t* labels, std::int64_t rows) {
        FloorLayer& last = layers_.back();
        const std::int64_t classes = mlp_.sizes.back();
        const float share = 1 / static_cast<float>(rows);
        for (std::int64_t r = 0; r < mlp_.micro; ++r) {
            const float* y = last.y + r * classes;
            float* d = last.dy + r * classes;
            const float largest = *std::max_element(y, y + classes);
            float total = 0;
            for (std::int64_t j = 0; j < classes; ++j) total += d[j] = std::exp(y[j] - largest);
            loss += std::log(total) - (y[labels[r]] - largest);
            for (std::int64_t j = 0; j < classes; ++j) d[j] *= share / total;
            d[labels[r]] -= share;
        }
    }

    Mlp mlp_;
    Aligned pictures_;
    std::vector<std::int32_t> labels_;
    std::vector<FloorLayer> layers_;
};

}  // namespace tally::bench
