// What an error of a launch says about the kernel's shapes.
#include "tally/gpu/format.hpp"

#include "catch.hpp"
#include "tally/gpu/elementwise.hpp"
#include "tally/gpu/matmul.hpp"
#include "tally/gpu/reduce.hpp"

namespace tally::test {

using namespace detail;

TEST_CASE("An error of a launch carries the shapes of its kernel") {
    const auto said = [](const auto& body) { return gpu::sizes_of(body, 12, "warps"); };
    CHECK(said(gpu::MaxBody<float>{nullptr, nullptr, detail::ReduceAxes{2, 3, 4}}) == "(2, 3, 4)");
    CHECK(said(gpu::ProductBody<float>{
              {2, 3, 4, false, false}, nullptr, nullptr, nullptr, {nullptr, Write::set}}) ==
          "(2, 4) x (4, 3)");
    StridedIndex<2> walk;
    walk.rank = 2;
    walk.size = 6;
    walk.extent[0] = 2;
    walk.extent[1] = 3;
    walk.stride = {{{3, 1}, {1, 0}}};
    walk.operand_size = {6, 2};
    CHECK(said(gpu::ZipBody<functor::Add, float>{{}, walk, nullptr, nullptr, nullptr}) == "(2, 3)");
    const gpu::SlopeTerm<functor::Add, 1, float> term{};
    CHECK(said(gpu::MeetingBody<2, float, gpu::SlopeTerm<functor::Add, 1, float>>{
              gpu::meeting(walk, 1), 3, true, term, {nullptr, Write::set}}) == "(2), summed over (3)");
    CHECK(said(gpu::FillBody<float>{0, nullptr}) == "12 warps");
}

}  // namespace tally::test
