// Tests that no entry of the CPU's kernel table is missing, and that no kernel allocates memory.
#include "count_allocations.hpp"
#include "kernel_testing.hpp"
#include "tally/device/backend.hpp"
#include "tally/kernels/kernel_slots.hpp"

namespace tally::test {

TEMPLATE_TEST_CASE("kernels: every slot of the table is filled", "", float, double, Dual<double>) {
    const auto slots = slots_of(kernels<TestType>(Device::cpu));
    CHECK(std::count(slots.begin(), slots.end(), AnyFunction(nullptr)) == 0);
}

TEST_CASE("kernels: an unavailable device throws Error", "[alone]") {
    if (available(Device::cuda)) TALLY_SKIP("there is a CUDA device");
    CHECK_THROWS_WITH(kernels<float>(Device::cuda), "[kernels] " + backend::unavailable_reason());
    CHECK_THAT(backend::unavailable_reason(), contains("no CUDA"));
    CHECK(available(Device::cpu));
    CHECK(detail::waits(Device::cuda) == 0);
    CHECK(detail::waits(Device::cpu) == 0);
}

TEMPLATE_TEST_CASE("cross_entropy: throws Error with the label when it is not a class", "", float, double,
                   Dual<double>) {
    using S = TestType;
    const Buffer<S> logits(6), probabilities(6), total(1), count(1);
    std::fill(logits.begin(), logits.end(), S(1));
    for (std::int32_t wrong : {-1, 3, 1000}) {
        const std::vector<std::int32_t> labels{2, wrong};
        CHECK_THROWS_WITH(
            kernels<S>(Device::cpu)
                .cross_entropy(logits.data(), labels.data(), LabelOptions{}, probabilities.data(),
                               total.data(), count.data(), 2, 3),
            contains("label " + std::to_string(wrong) + " in row 1 is not one of the 3 classes"));
    }
}

TEST_CASE("set_threads: threads() returns the new number", "") {
    CHECK(threads() == 1);
    set_threads(2);
    CHECK(threads() == 2);
    set_threads(1);
    CHECK_THROWS_WITH(set_threads(0), contains("[set_threads]"));
    CHECK_THROWS_WITH(set_threads(1025), contains("[set_threads] use at most 1024"));
    CHECK(threads() == 1);
}

TEST_CASE("set_products: selects ordered products or BLAS", "") {
    CHECK(products() == Products::ordered);
    set_products(detail::products_named("blas"));
    CHECK(products() == Products::blas);
    set_products(detail::products_named("ordered"));
    CHECK(products() == Products::ordered);
    CHECK_THROWS_WITH(detail::products_named("fast"),
                      contains("[products] unknown products 'fast'; use ordered or blas"));
    CHECK_THROWS_WITH(set_products(static_cast<Products>(7)), contains("[set_products]"));
    CHECK(products() == Products::ordered);
}

TEMPLATE_TEST_CASE("kernels: no kernel allocates", "", float, double) {
    using S = TestType;
    const Kernels<S>& k = fast<S>();
    Dice dice(3);
    const long before_one = allocations();
    const Buffer<S> one(1);
    REQUIRE(allocations() == before_one + 1);  // the test program counts allocations

    constexpr std::size_t rows = 70, width = 70, n = rows * width;
    const auto x = dice.numbers<S>(n, 0.1, 0.9), dy = dice.numbers<S>(n, 0.1, 0.9), d = dice.numbers<S>(n),
               y = dice.numbers<S>(n, 0.1, 0.9);
    const auto mean = dice.numbers<S>(n), rstd = dice.numbers<S>(n);
    const auto index = dice.integers(n, rows), place = dice.integers(n, rows);
    StridedIndex<2> bias;
    bias.rank = 2;
    bias.extent = {rows, width};
    bias.size = n;
    bias.stride[0] = {width, 1};
    bias.stride[1] = {0, 1};
    bias.operand_size = {n, width};
    StridedIndex<1> transposed;
    transposed.rank = 2;
    transposed.extent = {width, rows};
    transposed.size = n;
    transposed.stride[0] = {1, width};
    transposed.operand_size = {n};
    StridedIndex<3> three;
    three.rank = 1;
    three.extent = {n};
    three.size = n;
    three.stride = {{{1}, {1}, {1}}};
    three.operand_size = {n, n, n};

    k.matmul({rows, width, 70, false, false}, x.data(), y.data(),
             into(d, Write::set));  // a thread's first call allocates its packing buffer
    const long before = allocations();
    for (Write how : {Write::set, Write::add}) {
        const Into<S[]> to = into(d, how);
        each_functor<UnaryOps>([&](std::size_t slot, auto f) {
            k.map[slot](&f, x.data(), d.data(), n);
            k.map_back[slot](&f, dy.data(), x.data(), to, n);
        });
        each_functor<BinaryOps>([&](std::size_t slot, auto f) {
            k.zip[slot](&f, bias, x.data(), y.data(), d.data());
            k.zip_back_a[slot](&f, bias, dy.data(), x.data(), y.data(), y.data(), to);
            k.zip_back_b[slot](&f, bias, dy.data(), x.data(), y.data(), y.data(), to);
        });
        k.where(three, index.data(), x.data(), y.data(), d.data());
        k.where_back(three, index.data(), dy.data(), 1, to);
        k.fill(S(1), d.data(), n);
        k.add_scaled(S(2), x.data(), to, n);
        k.gather(transposed, x.data(), to);
        k.scatter(transposed, dy.data(), to);
        k.block(x.data(), width, to, width, rows, width - 1);
        k.rows(x.data(), index.data(), d.data(), rows, width);
        k.rows_back(dy.data(), index.data(), to, rows, rows, width);
        for (detail::ReduceDims dims :
             {detail::ReduceDims{rows, width, 1}, detail::ReduceDims{1, rows, width}}) {
            k.sum(x.data(), to, dims);
            k.spread(dy.data(), S(2), to, dims);
            k.max(x.data(), d.data(), dims);
            k.max_back(dy.data(), x.data(), y.data(), to, dims);
            k.logsumexp(x.data(), d.data(), dims);
            k.logsumexp_back(dy.data(), x.data(), y.data(), to, dims);
            k.softmax(x.data(), d.data(), dims);
            k.softmax_back(dy.data(), y.data(), to, dims);
            k.log_softmax(x.data(), d.data(), dims);
            k.log_softmax_back(dy.data(), y.data(), to, dims);
        }
        for (bool a : {false, true})
            for (bool b : {false, true})
                for (Product p :
                     {Product{rows, width, 70, a, b}, Product{1, width, 70, a, b}, Product{rows, 1, 70, a, b},
                      Product{rows, width, 1, a, b}, Product{8, 8, 8, a, b}})
                    k.matmul(p, x.data(), y.data(), to);
        k.linear(x.data(), y.data(), mean.data(), d.data(), rows, width, 70);
        k.cross_entropy(x.data(), index.data(), LabelOptions{-1, 0.1}, d.data(), mean.data(), rstd.data(),
                        rows, width);
        k.cross_entropy_back(dy.data(), x.data(), index.data(), LabelOptions{-1, 0.1}, to, rows, width);
        k.layer_norm(x.data(), y.data(), y.data(), S(1e-5), d.data(), mean.data(), rstd.data(), rows, width);
        k.layer_norm_back(dy.data(), x.data(), y.data(), mean.data(), rstd.data(), to, rows, width);
        k.layer_norm_back_gain(dy.data(), x.data(), mean.data(), rstd.data(), to, rows, width);
        const std::array<Update<S>, 2> both{Update<S>{d.data(), x.data(), mean.data(), rstd.data(), n, how},
                                            Update<S>{y.data(), dy.data(), nullptr, nullptr, n, how}};
        k.sgd(both, {});
        k.adam(both, {});
        k.average(both, {});
        k.limit(both, {});
        k.measure(both, true, std::array<double, 2>().data());
        for (detail::BatchNormDims dims :
             {detail::BatchNormDims{rows, width, 1}, detail::BatchNormDims{2, rows / 2, width}}) {
            k.batch_moments(x.data(), mean.data(), rstd.data(), dims);
            k.batch_norm(x.data(), mean.data(), rstd.data(), y.data(), y.data(), d.data(), dims);
            k.batch_norm_back_sums(dy.data(), x.data(), y.data(), y.data(), mean.data(), rstd.data(), dims);
            k.batch_norm_back(dy.data(), x.data(), y.data(), y.data(), y.data(), mean.data(), rstd.data(), to,
                              dims);
        }
        k.dropout(x.data(), {1, 2, 3, 1u << 31}, S(2), to, rows, width);
        for (std::size_t stride : {1u, 2u}) {
            const SlidingWindow w{10, 10, 3, 3, stride, 1, 9 / stride + 1, 9 / stride + 1};
            k.im2col(x.data(), d.data(), w, 1, 5);
            k.col2im(x.data(), to, w, 1, 5);
            const SlidingWindow inside{10, 10, 3, 3, stride, 0, 7 / stride + 1, 7 / stride + 1};
            k.max_pool(x.data(), d.data(), place.data(), inside, 5);
            k.max_pool_back(dy.data(), place.data(), to, inside, 5);
        }
    }
    CHECK(allocations() == before);
}

}  // namespace tally::test
