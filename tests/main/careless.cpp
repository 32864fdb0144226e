// Most test cases here change the state of the process. main_test.py checks that main() reports the changes.
#include "catch.hpp"
#include "tally/autograd/node.hpp"
#include "tally/kernels/kernels.hpp"
#include "tally/memory/memory.hpp"

namespace tally::test {

TEST_CASE("leaves a budget") { memory::set_budget(1 << 20); }

TEST_CASE("leaves bytes") {
    [[maybe_unused]] static memory::detail::Storage* const kept =
        memory::detail::allocate(64, Device::cpu);  // static, so that AddressSanitizer sees no leak
}

TEST_CASE("leaves threads") { set_threads(2); }

TEST_CASE("leaves products") { set_products(Products::blas); }

TEST_CASE("has ordered products") { CHECK(products() == Products::ordered); }

TEST_CASE("has products of BLAS") { CHECK(products() == Products::blas); }

TEST_CASE("leaves a mode") { detail::context.recording = false; }

TEST_CASE("is skipped unannounced") { TALLY_SKIP("it is not the day"); }

TEST_CASE("is skipped", "[alone]") { TALLY_SKIP("it is not the day"); }

TEST_CASE("leaves nothing") { CHECK(true); }

}  // namespace tally::test
