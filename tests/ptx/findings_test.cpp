// Tests that the executor finds faults of kernels and names them, and that it rejects PTX that it cannot read.
#include <fstream>
#include <iterator>
#include <numeric>
#include <regex>

#include "catch.hpp"
#include "folder.hpp"
#include "mutants.hpp"
#include "ptx_testing.hpp"

namespace tally::test {
namespace {

using Words = std::vector<std::uint32_t>;

// A kernel for one block: every thread has its index in %r0, the address of its word in %rd2 of p0 and in %rd3 of p1, and the
// address of its word of shared memory in %r1.
std::string kernel(const std::string& instructions) {
    return ptx_head +
           ".visible .entry k(\n.param .u64 p0,\n.param .u64 p1\n)\n{\n.shared .align 4 .b8 "
           "words[256];\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\n"
           ".reg .pred %p<4>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, words;\nmul.lo.u32 %r2, %r0, 4;\nadd.u32 "
           "%r1, %r1, %r2;\nld.param.u64 %rd0, [p0];\n"
           "ld.param.u64 %rd1, [p1];\nmul.wide.u32 %rd4, %r0, 4;\nadd.u64 %rd2, %rd0, %rd4;\nadd.u64 %rd3, "
           "%rd1, %rd4;\n" +
           instructions + "ret;\n}\n";
}

// Returns the first finding of a kernel with 64 threads, in an order; "" if there is none.
std::string finding(const std::string& instructions, const std::string& order = "forward",
                    unsigned blocks = 1, unsigned threads = 64) {
    Words in(64);
    std::iota(in.begin(), in.end(), 0u);
    const auto found = run_ptx(kernel(instructions), blocks, threads,
                               {in_global_memory(in), in_global_memory(Words(64))}, order);
    return found.empty() ? "" : found[0];
}

constexpr const char* orders[] = {"forward", "reverse", "random:1", "random:2"};

// Each thread writes its number to shared memory, and reads that of its neighbour.
std::string exchange(const std::string& barrier, const std::string& distance = "4") {
    return "ld.global.u32 %r3, [%rd2];\nst.shared.u32 [%r1], %r3;\n" + barrier + "xor.b32 %r4, %r1, " +
           distance + ";\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd3], %r5;\n";
}

}  // namespace

TEST_CASE("PTX: neighbours exchange numbers through shared memory in every order") {
    for (const char* order : orders) {
        Words in(64);
        std::iota(in.begin(), in.end(), 10u);
        std::uint32_t* const out = in_global_memory(Words(64));
        CHECK(run_ptx(kernel(exchange("bar.sync 0;\n")), 1, 64, {in_global_memory(in), out}, order).empty());
        for (std::uint32_t i = 0; i < 64; ++i) CHECK(out[i] == 10 + (i ^ 1));
    }
}

TEST_CASE("PTX: a missing barrier is found in every order") {
    for (const char* order : orders) {
        const std::string found = finding(exchange(""), order);
        const bool is_race = found.find("race") != found.npos,
                   is_early = found.find("before a thread writes it") != found.npos;
        CHECK((is_race || is_early));
        CHECK_THAT(found, contains("shared"));
        CHECK_THAT(found, contains("of the PTX: "));
    }
    // A second use of the same memory needs a second barrier.
    CHECK_THAT(finding(exchange("bar.sync 0;\n") + "st.shared.u32 [%r1], %r0;\n"),
               contains("race: a thread "));
    CHECK(finding(exchange("bar.sync 0;\n") + "bar.sync 0;\nst.shared.u32 [%r1], %r0;\n") == "");
}

TEST_CASE("Mutants: each change is judged, and memory stays as the unchanged kernel left it") {
    ptx::Program program(kernel(exchange("bar.sync 0;\n")), "test.ptx");
    ptx::Mutants mutants(program, "all");
    const ptx::Kernel& unchanged = program.kernel("k");
    REQUIRE(mutants.has(unchanged));
    Words in(64);
    std::iota(in.begin(), in.end(), 10u);
    std::uint32_t* const out = in_global_memory(Words(64));
    const void* const pointers[] = {in_global_memory(in), out};
    std::vector<std::byte> parameters(sizeof pointers);
    std::memcpy(parameters.data(), pointers, sizeof pointers);
    std::vector<ptx::Write> written;
    std::vector<bool> executed(unchanged.code.size());
    ptx::Machine machine(program, unchanged, 1, 64, parameters, {});
    machine.record(written);
    machine.cover(executed);
    machine.run();
    mutants.judge({unchanged, 1, 64, parameters, written, machine.steps()}, executed);
    for (std::uint32_t i = 0; i < 64; ++i) CHECK(out[i] == 10 + (i ^ 1));
    CHECK(!mutants.has(unchanged));  // a finding has stopped the others

    const Folder folder;
    mutants.write_report(folder / "report");
    std::ifstream file(folder / "report");
    const std::string report((std::istreambuf_iterator<char>(file)), {});
    CHECK(std::regex_search(report, std::regex("barrier\tk\t\\d+\t\t\\d+\t1\t1\tbar.sync 0;")));
    CHECK(std::regex_search(report, std::regex("shared\tk\t\\d+\t\t\\d+\t1\t0\tst.shared.u32")));
    CHECK(std::regex_search(report, std::regex("shared\tk\t\\d+\t\t\\d+\t1\t0\tld.shared.u32")));
    CHECK_THROWS_WITH(ptx::Mutants(program, "many"), contains("'many'"));
}

TEST_CASE("PTX: two threads that write one word of global memory are found") {
    CHECK_THAT(finding("st.global.u32 [%rd1], %r0;\n"),
               contains("race: a thread writes global memory that thread 0 accessed"));
    CHECK_THAT(finding("st.global.u32 [%rd3], %r0;\n", "forward", 2, 32), contains("block 0, thread 0"));
    CHECK_THAT(finding("ld.global.u32 %r3, [%rd1];\nst.global.u32 [%rd3], %r3;\n"), contains("race"));
    CHECK(finding("and.b32 %r3, %r0, 1;\nsetp.eq.u32 %p0, %r0, 0;\n@%p0 st.global.u32 [%rd1], %r0;\nbar.sync "
                  "0;\nld.global.u32 %r4, [%rd1];\n") == "");
    // All threads read a word, and then one of them writes it.
    CHECK_THAT(
        finding("ld.global.u32 %r3, [%rd1];\nsetp.eq.u32 %p0, %r0, 5;\n@%p0 st.global.u32 [%rd1], %r3;\n"),
        contains("race: a thread writes global memory that thread 0 accessed"));
    // Thread 0, the first reader, writes it after the others have read.
    const std::string all_read = "ld.global.u32 %r3, [%rd1];\nshfl.sync.idx.b32 %r4|%p1, %r3, 0, 31, -1;\n";
    CHECK_THAT(
        finding(all_read + "setp.eq.u32 %p0, %r0, 0;\n@%p0 st.global.u32 [%rd1], %r3;\n", "forward", 1, 32),
        contains("memory that other threads accessed"));
    CHECK(
        finding(
            "setp.eq.u32 %p0, %r0, 5;\n@%p0 ld.global.u32 %r3, [%rd1];\n@%p0 st.global.u32 [%rd1], %r3;\n") ==
        "");
    // Four threads write the bytes of one word.
    CHECK(finding("cvt.u64.u32 %rd5, %r0;\nadd.u64 %rd6, %rd1, %rd5;\nst.global.u8 [%rd6], %r0;\n") == "");
}

TEST_CASE("PTX: an off-by-one at the end of a block is found") {
    const std::string next = "ld.global.u32 %r3, [%rd2+4];\nst.global.u32 [%rd3], %r3;\n";
    CHECK_THAT(finding(next), contains("an access of 4 bytes at byte 256 of an allocation of 256 bytes"));
    CHECK(finding("setp.lt.u32 %p0, %r0, 63;\n@!%p0 bra $end;\n" + next + "$end:\n") == "");
    CHECK_THAT(finding("st.shared.u32 [%r1+4], %r0;\n"), contains("outside of shared and local memory"));
}

TEST_CASE("PTX: a write past the end, a swapped index, and a misaligned access are found") {
    CHECK_THAT(finding("st.global.u32 [%rd3+252], %r0;\n"), contains("thread 1"));
    CHECK_THAT(
        finding("mul.wide.u32 %rd5, %r0, 256;\nadd.u64 %rd6, %rd1, %rd5;\nst.global.u32 [%rd6], %r0;\n"),
        contains("byte 256 of an allocation of 256"));
    CHECK_THAT(finding("ld.global.u32 %r3, [%rd2+2];\n"), contains("not aligned"));
    CHECK_THAT(finding("ld.global.v2.u32 {%r3, %r4}, [%rd2];\n"), contains("not aligned"));
}

TEST_CASE("PTX: a read of memory that nothing was written to is found") {
    CHECK_THAT(finding("ld.shared.u32 %r3, [%r1];\n"),
               contains("shared memory is read before a thread writes it"));
    CHECK_THAT(finding(".local .align 4 .b8 mine[8];\nmov.u64 %rd5, mine;\nst.local.u32 [%rd5], "
                       "%r0;\nld.local.u32 %r3, [%rd5+4];\n"),
               contains("local memory is read before the thread writes it, at byte 4"));
}

TEST_CASE("PTX: wrong shuffles are found") {
    const auto shuffle = [](const std::string& how, const std::string& mask) {
        return "shfl.sync." + how + ".b32 %r3|%p0, %r0, 1, 31, " + mask + ";\nst.global.u32 [%rd3], %r3;\n";
    };
    CHECK(finding(shuffle("down", "-1")) == "");
    CHECK_THAT(finding("setp.lt.u32 %p1, %r0, 8;\n@%p1 bra $end;\n" + shuffle("down", "-1") + "$end:\n"),
               contains("a shuffle waits for lane 0, which has ended"));
    CHECK_THAT(finding("setp.lt.u32 %p1, %r0, 8;\n@!%p1 bra $end;\n" + shuffle("down", "0xFE") + "$end:\n"),
               contains("not in the mask"));
    CHECK_THAT(finding(shuffle("down", "-1"), "forward", 1, 16),
               contains("which has ended or does not exist"));
    CHECK_THAT(finding("setp.lt.u32 %p1, %r0, 8;\n@!%p1 bra $end;\n" + shuffle("down", "0xFF") + "$end:\n"),
               contains("reads lane 8, which takes no part"));
}

TEST_CASE("PTX: shuffles exchange values as the manual says") {
    const auto shuffled = [](const std::string& how, std::uint32_t by, std::uint32_t bounds) {
        std::uint32_t* const out = in_global_memory(Words(64));
        const auto found = run_ptx(
            kernel("shfl.sync." + how + ".b32 %r3|%p0, %r0, " + std::to_string(by) + ", " +
                   std::to_string(bounds) +
                   ", -1;\nselp.u32 %r4, 100, 0, %p0;\nadd.u32 %r3, %r3, %r4;\nst.global.u32 [%rd3], %r3;\n"),
            1, 64, {out, out}, "reverse");
        CHECK(found.empty());
        return Words(out + 32, out + 64);  // the second warp
    };
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
        const std::uint32_t me = 32 + lane;
        CHECK(shuffled("down", 3, 31)[lane] == (lane + 3 < 32 ? me + 3 + 100 : me));
        CHECK(shuffled("up", 3, 0)[lane] == (lane >= 3 ? me - 3 + 100 : me));
        CHECK(shuffled("bfly", 5, 31)[lane] == 32 + (lane ^ 5) + 100);
        CHECK(shuffled("idx", 9, 31)[lane] == 32 + 9 + 100);
        CHECK(shuffled("down", 3, 0x1807)[lane] ==
              ((lane & 7) + 3 < 8 ? me + 3 + 100 : me));  // segments of eight lanes
        CHECK(shuffled("idx", 2, 0x1807)[lane] == 32 + (lane & 24) + 2 + 100);
    }
}

TEST_CASE("PTX: barriers that some threads do not reach are found") {
    for (const char* order : orders) {
        CHECK_THAT(finding("setp.lt.u32 %p1, %r0, 40;\n@%p1 bra $end;\nbar.sync 0;\n$end:\n", order),
                   contains("has ended, and never reaches this barrier"));
        CHECK_THAT(finding("setp.lt.u32 %p1, %r0, 40;\n@%p1 bra $other;\nbar.sync 0;\nbra "
                           "$end;\n$other:\nbar.sync 0;\n$end:\n",
                           order),
                   contains("waits at another barrier"));
        CHECK_THAT(finding("setp.lt.u32 %p1, %r0, 4;\n@%p1 bra $bar;\nshfl.sync.idx.b32 %r3|%p0, %r0, 0, 31, "
                           "-1;\n$bar:\nbar.sync 0;\n",
                           order),
                   contains("deadlock"));
    }
}

TEST_CASE("PTX: text that cannot be read is rejected with its line") {
    const auto why = [](const std::string& text) -> std::string {
        try {
            ptx::Program program(text, "file.ptx");
            program.kernel("k");
            return "";
        } catch (const ptx::Unreadable& error) {
            return error.what();
        }
    };
    const std::string good = kernel("");
    CHECK(why(good) == "");
    CHECK(why("int main() {}") == "[ptx] file.ptx is not PTX: it has no line .version");
    CHECK(why(".version 12.1\n.target sm_200\n") ==
          "[ptx] file.ptx, line 1: PTX version 12.1 is not supported; versions 7.0 to 9.9 are");
    CHECK(why(ptx_head) == "[ptx] file.ptx has no kernel k");
    CHECK_THAT(why(good.substr(0, good.size() - 20)), contains("the file is truncated"));
    CHECK_THAT(why(kernel("tex.2d.v4.f32 %r0, %r1;\n")),
               contains("unknown instruction 'tex.2d.v4.f32 %r0, %r1'"));
    CHECK_THAT(why(kernel("add.rn.ftz.f32 %r0, %r1, %r2;\n")), contains("line 22: unknown instruction"));
    CHECK_THAT(why(kernel("bra $nowhere;\n")), contains("unknown label '$nowhere'"));
    CHECK_THAT(why(kernel("mov.u32 %r0, %clock;\n")), contains("unknown register '%clock'"));
    CHECK_THAT(why(kernel("setp.eq.u32 %p1|%p2, %r0, %r1;\n")), contains("unknown register '%p1|%p2'"));
    CHECK_THAT(why(kernel("add.u32 %r0, %r1;\n")), contains("unknown instruction"));
    CHECK_THAT(why(kernel("mov.u32 5, 6;\n")), contains("unknown instruction"));
    CHECK_THAT(why(kernel("ld.global.foo.u32 %r0, [%rd2];\n")), contains("unknown instruction"));
    CHECK_THAT(why(kernel("mov.u32 %r0, something;\n")), contains("unknown operand 'something'"));
    CHECK_THAT(why(kernel("call.uni helper;\n")), contains("is not in this PTX"));
    CHECK_THROWS_WITH(ptx::Schedule::from("sideways"),
                      "[ptx] the order of threads is 'sideways'; it may be forward, reverse or random:SEED");
    CHECK_THROWS_WITH(ptx::Schedule::from("random:"), contains("'random:'"));
}

TEST_CASE("PTX: memory of the device is checked for copies and releases") {
    ptx::Memory& memory = ptx::Memory::one();
    auto* const data = static_cast<std::byte*>(memory.allocate(100));
    CHECK(memory.complaint(data + 20, 80) == "");
    CHECK(memory.complaint(data + 20, 81) == "81 bytes of device memory are outside of an allocation");
    CHECK(memory.free(data + 1) != "");
    CHECK(memory.free(data) == "");
    CHECK(memory.complaint(data, 100) == "100 bytes of device memory are accessed after their release");
    CHECK(memory.free(data) != "");
    CHECK(memory.allocate(ptx::Memory::capacity + 1) == nullptr);
}

TEST_CASE("PTX: a kernel without an end is stopped") {
    CHECK_THAT(finding("$again:\nbra $again;\n"), contains("the kernel does not end"));
    CHECK_THAT(finding("$again:\nbra $again;\n", "random:1", 1, 4), contains("the kernel does not end"));
}

TEST_CASE("PTX: an address of another kind of memory is found") {
    CHECK_THAT(finding("cvt.u64.u32 %rd5, %r1;\nst.global.u32 [%rd5], %r0;\n"),
               contains("outside of shared and local memory"));
    CHECK_THAT(finding("ld.shared.u32 %r3, [%rd2];\n"),
               contains("a global address is used for another kind of memory"));
}

}  // namespace tally::test
