// Tests that the error message of a kernel launch contains the shapes of the kernel's operands.
#include "tally/gpu/format.hpp"

#include "catch.hpp"
#include "tally/gpu/elementwise.hpp"
#include "tally/gpu/matmul.hpp"
#include "tally/gpu/reduce.hpp"

namespace tally::test {

using namespace detail;

TEST_CASE("sizes_of: returns the shapes of a kernel's operands") {
    const auto sizes = [](const auto& body) { return gpu::sizes_of(body, 12, "warps"); };
    CHECK(sizes(gpu::MaxBody<float>{nullptr, nullptr, detail::ReduceDims{2, 3, 4}}) == "(2, 3, 4)");
    CHECK(sizes(gpu::ProductBody<float>{
              {2, 3, 4, false, false}, nullptr, nullptr, nullptr, {nullptr, Write::set}}) ==
          "(2, 4) x (4, 3)");
    StridedIndex<2> walk;
    walk.rank = 2;
    walk.size = 6;
    walk.extent[0] = 2;
    walk.extent[1] = 3;
    walk.stride = {{{3, 1}, {1, 0}}};
    walk.operand_size = {6, 2};
    CHECK(sizes(gpu::ZipBody<functor::Add, float>{{}, walk, nullptr, nullptr, nullptr}) == "(2, 3)");
    const gpu::SlopeTerm<functor::Add, 1, float> term{};
    CHECK(sizes(gpu::SumAlongBody<2, float, gpu::SlopeTerm<functor::Add, 1, float>>{
              gpu::reduction_walk(walk, 1), 3, true, term, {nullptr, Write::set}}) == "(2), summed over (3)");
    CHECK(sizes(gpu::FillBody<float>{0, nullptr}) == "12 warps");
}

}  // namespace tally::test
