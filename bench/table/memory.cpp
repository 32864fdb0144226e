// Makes the rows that measure time, and memory beyond parameters, gradients and data, of a deep model. The
// rows compare the update of a whole batch with micro-batches and with checkpoints.
#include <memory>
#include <string>

#include "bench/table/frameworks.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/rows.hpp"
#include "bench/table/vectors.hpp"
#include "tally/tally.hpp"

namespace tally::bench {
namespace {

class DeepModel {
public:
    explicit DeepModel(const Deep& deep) : deep_(deep), data_({deep.batch, deep.width}, deep.data()) {
        for (std::size_t i = 0; i < deep.layers; ++i) {
            const Tensor w = parameter(Array<float>({deep.width, deep.width}, deep.weight(i))),
                         b = parameter(Array<float>({deep.width}, deep.bias(i)));
            parameters_.push_back(w);
            parameters_.push_back(b);
            chain_.push_back([w, b](Tensor x) { return relu(linear(std::move(x), w, b)); });
        }
        if (deep_.segments.empty()) deep_.segments = {deep.layers};
    }
    void run() const {
        for (const Tensor& p : parameters_) p.zero_grad();
        for (std::int64_t from = 0; from < deep_.batch; from += deep_.rows) {
            const Tensor x = constant(data_.slice_rows(from, from + deep_.rows));
            (sum(checkpoint_sequential(chain_, deep_.segments, x)) / static_cast<double>(deep_.batch))
                .backward();
        }
    }
    double mebibytes() const {
        run();
        const std::size_t before = memory::in_use();
        memory::reset_peak();
        run();
        return static_cast<double>(memory::peak() - before) / (1 << 20);
    }
    Numbers numbers() const {
        run();
        Numbers all;
        for (const Tensor& p : parameters_) all.push_back(doubles(p.grad().span()));
        return all;
    }
    detail::Segmentation fit(std::size_t bytes) const {
        return fit_into(chain_, constant(data_.slice_rows(0, deep_.rows)), bytes);
    }

private:
    Deep deep_;
    std::vector<Tensor> parameters_;
    Chain<Array<float>> chain_;
    Array<float> data_;
};

std::string cut(const Deep& deep) {
    return std::to_string(deep.batch / deep.rows) + " x " + std::to_string(deep.rows);
}

Side by_tally(const std::string& name, const Deep& deep) {
    const auto model = std::make_shared<DeepModel>(deep);
    return {name, Role::tally, [model] { model->run(); }, [model] { return model->numbers(); },
            model->mebibytes()};
}

Side not_verified(const Deep& deep) {
    Side side = by_tally("not verified", deep);
    side.run = [run = std::move(side.run)] {
        const NoCheckpointVerification off;
        run();
    };
    return side;
}

// The model has so many layers that rounding may change the sign of an input of a ReLU.
Row deep_enough(Row row) {
    row.tolerance = 1e-3;
    return row;
}

// Returns two goals: a limit on the memory, and a limit on the time relative to the time of the whole batch.
std::vector<Goal> goals(double mebibytes, double times) {
    return {{Goal::at_most_mebibytes, mebibytes, "tally"}, {Goal::at_most, times, "1 x 4096"}};
}

const char* const model_words = "32 x (Linear 256 + ReLU), batch 4096";

Row whole_batch() {
    Row row{
        "memory-1x4096", std::string("memory of ") + model_words + ": full batch", {by_tally("tally", {})}};
    row.must = {{Goal::at_most_mebibytes, 132, "tally"}};
    row.aims = {{Goal::at_most_mebibytes, 129, "tally"}};
    row.note = "floor: one buffer a layer, 128 MiB";
    add_libtorch(row, Deep{});
    add_framework(row, jax, description(Deep{}), true);
    return deep_enough(std::move(row));
}

Row micro_batches() {
    const Deep deep{.rows = 1024};
    Row row{"memory-4x1024", "the same as 4x1024", {by_tally("tally", deep), by_tally("1 x 4096", {})}};
    row.must = goals(34, 1.02);
    row.aims = goals(33, 1.0);
    row.must.push_back({Goal::faster, 1.15, jax});
    row.aims.push_back({Goal::faster, 1.3, jax});
    row.note = "floor: one buffer a layer, 32 MiB";
    add_libtorch(row, deep);
    add_framework(row, jax, description(deep), true);
    return deep_enough(std::move(row));
}

// JAX runs without checkpoints, because XLA on a CPU replaces the recomputation by the values of the
// forward pass.
Row checkpoints(std::size_t mebibytes, const char* name, double must_time, std::vector<Goal> aims) {
    Deep deep{.rows = 1024};
    const auto chosen = DeepModel(deep).fit((mebibytes << 20) + (1 << 19));
    deep.segments = chosen.sizes;
    Row row{name,
            "the same as 4x1024 with checkpoints, into " + std::to_string(mebibytes) + " MiB",
            {by_tally("tally", deep), by_tally("1 x 4096", {}), not_verified(deep)}};
    row.must = goals(static_cast<double>(mebibytes), must_time);
    row.aims = std::move(aims);
    row.note = to_string(chosen);
    row.must.push_back({Goal::faster, by_vectors(0.95, 0.97), jax});
    row.aims.push_back({Goal::faster, 1.05, jax});
    add_framework(row, jax, description(deep), true);
    deep.segments = even_segments(deep.layers, 3);
    add_libtorch(row, deep);
    return deep_enough(std::move(row));
}

// Returns a row with few items and wide layers. Weights and gradients need nearly all of its memory.
Row wide() {
    const Deep whole{4, 1024, 64, 64};
    Deep micro = whole, again = whole;
    micro.rows = again.rows = 16;
    again.segments = {2, 2};
    Row row{"memory-wide",
            "4 x (Linear 1024 + ReLU), batch 64, as 4x16",
            {by_tally("tally", micro), by_tally(cut(whole), whole), by_tally("4 x 16 in 2 segments", again)}};
    add_libtorch(row, micro);
    return row;
}

}  // namespace

std::vector<Planned> memory_rows() {
    return {{"memory-1x4096", whole_batch},
            {"memory-4x1024", micro_batches},
            {"memory-checkpoints", [] { return checkpoints(14, "memory-checkpoints", 1.22, {}); }},
            {"memory-checkpoints-13",
             [] { return checkpoints(13, "memory-checkpoints-13", 1.22, goals(13, 1.20)); }, true},
            {"memory-wide", wide, true}};
}

}  // namespace tally::bench
