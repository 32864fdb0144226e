// Implements the rows of the GPU benchmark. A row is an update of a network, or one kernel on an array that
// is larger than every cache.
#include "bench/gpu_rows.hpp"

#include <cmath>
#include <memory>

namespace tally::bench {

using namespace detail;

namespace {

Array<float> numbers(const Shape& shape, std::uint64_t stream, Device device, float scale = 1) {
    std::vector<float> values(shape.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = number(i, stream) * scale;
    return Array<float>(shape, values, device);
}

Array<float> concatenated(const std::vector<Array<float>>& arrays) {
    std::vector<float> all;
    for (const Array<float>& array : arrays)
        for (const float value : array.to_vector()) all.push_back(value);
    return Array<float>({static_cast<std::int64_t>(all.size())}, all);
}

}  // namespace

// Runs one update of a network with ReLU between the layers. The loss is the mean cross-entropy, and the
// optimizer is SGD.
Row update(const std::string& name, const Network& network, Device device) {
    struct Layer {
        Tensor w, bias;
    };
    struct Micro {
        Tensor x;
        Array<std::int32_t> labels;
    };
    std::vector<Layer> layers;
    std::vector<Tensor> parameters;
    for (std::size_t l = 1; l < network.sizes.size(); ++l) {
        const std::int64_t in = network.sizes[l - 1], out = network.sizes[l];
        const auto scale = static_cast<float>(2 / std::sqrt(static_cast<double>(in)));
        layers.push_back({parameter(numbers({in, out}, 2 * l, device, scale)),
                          parameter(numbers({out}, 2 * l + 1, device, scale))});
        parameters.insert(parameters.end(), {layers.back().w, layers.back().bias});
    }
    const std::int64_t batch = network.micro_batches * network.rows_each;
    std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
    for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(network.sizes.back()));
    const Array<float> all = numbers({batch, network.sizes[0]}, 1, device);
    const Array<std::int32_t> all_labels({batch}, labels, device);
    std::vector<Micro> micros;
    for (std::int64_t at = 0; at < batch; at += network.rows_each)
        micros.push_back({constant(all.slice_rows(at, at + network.rows_each)),
                          all_labels.slice_rows(at, at + network.rows_each)});

    return {name, "update",
            [=] {
                for (const Tensor& parameter : parameters) parameter.zero_grad();
                for (const Micro& micro : micros) {
                    Tensor y = micro.x;
                    for (std::size_t l = 0; l < layers.size(); ++l) {
                        if (l > 0) y = relu(std::move(y));
                        y = linear(std::move(y), layers[l].w, layers[l].bias);
                    }
                    (cross_entropy(std::move(y), micro.labels).sum / static_cast<float>(batch)).backward();
                }
                sgd_step(parameters, 0.001);
            },
            [=] {
                std::vector<Array<float>> gradients;
                for (const Tensor& parameter : parameters) gradients.push_back(parameter.grad());
                return concatenated(gradients);
            }};
}

std::vector<Row> kernels_alone(std::size_t rows, std::size_t columns, Device device) {
    const Kernels<float>& kernel = kernels<float>(device);
    const auto high = static_cast<std::int64_t>(rows), wide = static_cast<std::int64_t>(columns);
    struct Arrays {
        Array<float> x, y, z, row, column;
    };
    const auto all =
        std::make_shared<Arrays>(Arrays{numbers({high, wide}, 1, device), numbers({high, wide}, 2, device),
                                        Array<float>::zeros({high, wide}, device), numbers({wide}, 3, device),
                                        Array<float>::zeros({high}, device)});
    const float *const x = all->x.data(), *const y = all->y.data();
    float *const z = all->z.writable(), *const row = all->row.writable(),
                 *const column = all->column.writable();
    const std::size_t n = rows * columns, bytes = n * sizeof(float);
    const auto size = " " + std::to_string(rows) + "x" + std::to_string(columns);
    const auto result = [all](Array<float> Arrays::*where) {
        return [all, where] { return ((*all).*where).to(Device::cpu); };
    };
    StridedIndex<2> plain;
    detail::make_contiguous(plain, n);
    const StridedIndex<2> down = detail::broadcast_index({high, wide}, {high, wide}, {wide});
    return {
        {"relu" + size, "call",
         [=, &kernel] {
             const functor::Relu relu;
             kernel.map[slot<functor::Relu, UnaryOps>](&relu, x, z, n);
         },
         result(&Arrays::z), 2 * bytes},
        {"relu backward" + size, "call",
         [=, &kernel] {
             const functor::Relu relu;
             kernel.map_back[slot<functor::Relu, UnaryOps>](&relu, x, y, {z, Write::set}, n);
         },
         result(&Arrays::z), 3 * bytes},
        {"add" + size, "call",
         [=, &kernel] {
             const functor::Add add;
             kernel.zip[slot<functor::Add, BinaryOps>](&add, plain, x, y, z);
         },
         result(&Arrays::z), 3 * bytes},
        {"bias" + size, "call",
         [=, &kernel] {
             const functor::Add add;
             kernel.zip[slot<functor::Add, BinaryOps>](&add, down, x, row, z);
         },
         result(&Arrays::z), 2 * bytes},
        {"softmax" + size, "call",
         [=, &kernel] {
             kernel.softmax(x, z, {rows, columns, 1});
         },
         result(&Arrays::z), 2 * bytes},
        {"sum across" + size, "call",
         [=, &kernel] {
             kernel.sum(x, {column, Write::set}, {rows, columns, 1});
         },
         result(&Arrays::column), bytes},
        {"sum down" + size, "call",
         [=, &kernel] {
             kernel.sum(x, {row, Write::set}, {1, rows, columns});
         },
         result(&Arrays::row), bytes},
    };
}

}  // namespace tally::bench
