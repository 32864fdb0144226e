// Makes the rows that compare single matrix products of tally and OpenBLAS.
#include <cblas.h>

#include <memory>
#include <string>

#include "bench/table/aligned.hpp"
#include "bench/table/problems.hpp"
#include "bench/table/rows.hpp"
#include "bench/table/vectors.hpp"
#include "tally/kernels/kernels.hpp"

namespace tally::bench {
namespace {

constexpr const char* openblas = "OpenBLAS";

struct Matrices {
    explicit Matrices(const detail::Product& p)
        : a(Mlp::uniform(p.m * p.k, 1, 1)),
          b(Mlp::uniform(p.k * p.n, 2, 1)),
          ours(p.m * p.n),
          theirs(p.m * p.n) {}
    Aligned a, b, ours, theirs;
};

// Calls OpenBLAS as a user would. Calls gemv for a matrix of one row, and ger if each number of the result
// has only one summand.
void by_openblas(const detail::Product& p, const Matrices& of) {
    const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    const auto how = [](bool transposed) { return transposed ? CblasTrans : CblasNoTrans; };
    if (p.m == 1)
        cblas_sgemv(CblasRowMajor, how(!p.transpose_b), p.transpose_b ? n : k, p.transpose_b ? k : n, 1, of.b,
                    p.transpose_b ? k : n, of.a, 1, 0, of.theirs, 1);
    else if (p.k == 1)
        cblas_sger(CblasRowMajor, m, n, 1, of.a, 1, of.b, 1, of.theirs, n);
    else
        cblas_sgemm(CblasRowMajor, how(p.transpose_a), how(p.transpose_b), m, n, k, 1, of.a,
                    p.transpose_a ? m : k, of.b, p.transpose_b ? k : n, 0, of.theirs, n);
}

Numbers numbers(const Aligned& of, const std::function<void()>& run) {
    std::fill_n(static_cast<float*>(of), of.size(), 0.f);
    run();
    return {of.doubles()};
}

Planned planned(const char* name, const char* what, const detail::Product& p, double must, double aims) {
    const std::string size = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
    return {std::string("product-") + name + "-" + size, [=] {
                const auto of = std::make_shared<Matrices>(p);
                const Write how = p.k == 1 && p.m != 1 ? Write::add : Write::set;
                const auto ours = [=, kernel = detail::kernels<float>(Device::cpu).matmul] {
                    kernel(p, of->a, of->b, Into<float[]>{of->ours, how});
                };
                const auto theirs = [=] { by_openblas(p, *of); };
                Row row{std::string("product-") + name + "-" + size,
                        std::string(what) + " " + size,
                        {{"tally", Role::tally, ours, [=] { return numbers(of->ours, ours); }},
                         {openblas, Role::floor, theirs, [=] { return numbers(of->theirs, theirs); }}}};
                if (must > 0) row.must = {{Goal::faster, must, openblas}};
                row.aims = {{Goal::faster, aims, openblas}};
                return row;
            }};
}

}  // namespace

// The products have the sizes of lesson 22's network with up to 64 items, and of a deep network. Two are cubes.
std::vector<Planned> product_rows() {
    const auto large = [](const char* name, const char* what, const detail::Product& p) {
        return planned(name, what, p, by_vectors(0.9, 0.97), 1);
    };
    const auto few = [](const char* name, const char* what, const detail::Product& p) {
        return planned(name, what, p, by_vectors(1, 0.97), 1.2);
    };
    std::vector<Planned> rows{
        large("xw", "product x W", {64, 512, 784, false, false}),
        large("xdy", "product xᵀdy", {784, 512, 64, true, false}),
        large("dyw", "product dy Wᵀ", {64, 512, 512, false, true}),
        large("xw", "product x W", {4096, 256, 256, false, false}),
        large("xdy", "product xᵀdy", {256, 256, 4096, true, false}),
        large("cube", "product", {128, 128, 128, false, false}),
        large("cube", "product", {1024, 1024, 1024, false, false}),
        few("xw", "product x W", {16, 512, 784, false, false}),
        few("dyw", "product dy Wᵀ", {16, 512, 512, false, true}),
        few("xw", "product x W", {1, 512, 784, false, false}),
        planned("dyw", "product dy Wᵀ", {1, 512, 512, false, true}, by_vectors(1, 0), 1.2),
        few("xdy", "product xᵀdy, added,", {784, 512, 1, true, false}),
        few("xw", "product x W", {64, 10, 512, false, false}),
        few("xdy", "product xᵀdy", {512, 10, 64, true, false})};
    for (const std::size_t items : {4, 8, 24, 48}) {
        rows.push_back(
            planned("xw", "product x W", {items, 512, 784, false, false}, by_vectors(0, 0.97), 1.2));
        rows.push_back(
            planned("dyw", "product dy Wᵀ", {items, 512, 512, false, true}, by_vectors(0, 0.97), 1.2));
    }
    return rows;
}

}  // namespace tally::bench
