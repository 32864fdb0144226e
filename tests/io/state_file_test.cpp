// Tests state files. Loading returns the saved state. An invalid file throws an Error with the file's name
// and the faulty byte's position. If saving is interrupted, the old or the new file is left.
#include "tally/io/training_state.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <system_error>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_faults.hpp"
#include "io/file_testing.hpp"
#include "io/killed.hpp"
#include "tally/io/crc64.hpp"
#include "tally/io/file_bytes.hpp"

namespace tally::test {
namespace {

TrainingState small_state() {
    TrainingState state;
    state.put("lr", 0.1);
    state.put("schedule", std::string("cosine"));
    state.put("steps", std::int64_t{-7});
    state.put("w", Array<float>({2, 1}, {1.5f, -0.0f}));
    state.put("v", Array<double>({}, {2.5}));
    return state;
}

template <class S> bool same(const Array<S>& a, const Array<S>& b) { return same_bits(a, b); }
bool same(double a, double b) { return as_text(a) == as_text(b); }
bool same(std::int64_t a, std::int64_t b) { return a == b; }
bool same(const std::string& a, const std::string& b) { return a == b; }

bool same(const TrainingState& a, const TrainingState& b) {
    if (a.entries().size() != b.entries().size()) return false;
    for (const auto& [name, entry] : a.entries()) {
        const bool equal = std::visit(
            [&, &key = name]<class T>(const T& value) { return b.has(key) && same(value, b.get<T>(key)); },
            entry);
        if (!equal) return false;
    }
    return true;
}

TrainingState random_state(Random& random) {
    TrainingState state;
    for (std::int64_t n = random.whole(0, 8); n > 0; --n) {
        std::string name(static_cast<std::size_t>(random.whole(0, 5)), ' ');
        for (char& c : name) c = static_cast<char>(random.whole(-128, 127));
        if (state.has(name)) continue;
        switch (random.whole(0, 4)) {
            case 0:
                state.put(name,
                          static_cast<std::int64_t>(random.whole(std::numeric_limits<std::int64_t>::min(),
                                                                 std::numeric_limits<std::int64_t>::max())));
                break;
            case 1:
                state.put(name, random.between(-1e300, 1e300));
                break;
            case 2:
                state.put(name, std::string(static_cast<std::size_t>(random.whole(0, 9)), '\0'));
                break;
            case 3:
                state.put(name, random.array<float>(random.shape(6)));
                break;
            default:
                state.put(name, random.array<double>(random.shape(6)));
        }
    }
    return state;
}

// ---- invalid files ----

const std::string head = std::string("tally\r\n\0\1\0\0\0\0\0\0\0", 16);

std::string sealed(const std::string& entries) {
    const std::string file = head + as_text<std::uint64_t>(32 + entries.size()) + entries;
    return file + as_text(crc64(as_bytes(file)));
}

std::string entry(const std::string& name, char kind, const std::string& content) {
    return as_text(static_cast<std::uint32_t>(name.size())) + name + kind + content;
}

std::string state_error(const std::string& bytes) {
    const std::string words = message_of([&] { detail::parse_state(as_bytes(bytes), "run.state"); });
    const std::string start = "[TrainingState::load] 'run.state', ";
    return words.rfind(start, 0) == 0 ? words.substr(start.size()) : "(no place) " + words;
}

// Returns the bytes of a file that has an invalid array, but a valid checksum.
std::string array_file(const std::string& axes_and_extents, const std::string& numbers) {
    return sealed(entry("w", 4, axes_and_extents + numbers));
}

}  // namespace

TEST_CASE("TrainingState::save: a saved state is loaded bit by bit") {
    const std::uint64_t seed = GENERATE(range(1u, 200u));
    CAPTURE(seed);
    Random random(seed);
    const Folder folder;
    const TrainingState state = random_state(random);
    state.save(folder / "run.state");
    CHECK(same(TrainingState::load(folder / "run.state"), state));
    CHECK(detail::state_bytes(TrainingState::load(folder / "run.state")) == read_bytes(folder / "run.state"));
}

TEST_CASE("TrainingState::save: NaN and infinity are preserved") {
    TrainingState state;
    const double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();
    state.put("nan", nan);
    state.put("all", Array<double>({4}, {nan, -0.0, inf, -inf}));
    CHECK(same(detail::parse_state(as_bytes(detail::state_bytes(state)), "run.state"), state));
}

TEST_CASE("crc64: the checksum is CRC-64/XZ") {
    CHECK(crc64(as_bytes("123456789")) == 0x995DC9BBDF1939FA);  // the check value that CRC-64/XZ documents
    CHECK(crc64({}) == 0);
    CHECK(crc64(as_bytes("12345678abcdefghXYZ")) != crc64(as_bytes("abcdefgh12345678XYZ")));
}

TEST_CASE("parse_state: a file with any byte changed throws an Error") {
    const std::string whole = detail::state_bytes(small_state());
    REQUIRE(same(detail::parse_state(as_bytes(whole), "whole"), small_state()));
    std::size_t rejected = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (int change = 1; change < 256; ++change) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ change);
            if (state_error(damaged).rfind("byte ", 0) != 0) FAIL("byte " << at << " xor " << change);
            ++rejected;
        }
    }
    CHECK(rejected == 255 * whole.size());
}

TEST_CASE("parse_state: a truncated or extended file throws an Error") {
    const std::string whole = detail::state_bytes(small_state());
    for (std::size_t length = 0; length < whole.size(); ++length) {
        CAPTURE(length);
        CHECK_THAT(state_error(whole.substr(0, length)), contains("byte "));
    }
    CHECK(state_error(whole + "x") == "byte " + std::to_string(whole.size()) +
                                          ": 1 bytes too many: the head gives a length of " +
                                          std::to_string(whole.size()));
}

TEST_CASE("parse_state: an invalid file throws an Error with its name and the byte") {
    CHECK(state_error("") == "byte 0: not a training state: the magic word is missing");
    CHECK(state_error("PK\3\4 this is a zip file") ==
          "byte 0: not a training state: the magic word is missing");
    std::string newer = sealed("");
    newer[8] = 2;
    CHECK(state_error(newer) ==
          "byte 8: version 2, but this program reads version 1; use a newer version of tally");
    newer[8] = 0;
    CHECK(state_error(newer) == "byte 8: version 0, but this program reads version 1");
    std::string reserved = sealed("");
    reserved[12] = 1;
    CHECK(state_error(reserved) == "byte 12: 0 expected");
    CHECK(state_error(head.substr(0, 10)) == "byte 8: truncated: the version needs 4 bytes, but 2 are left");
    CHECK(state_error(sealed("").substr(0, 31)) ==
          "byte 31: truncated: the head gives a length of 32 bytes, but the file has 31");
    CHECK(state_error(head + as_text<std::uint64_t>(24)) == "byte 24: truncated: the checksum is missing");
    std::string damaged = sealed("");
    damaged[31] ^= 1;
    CHECK(state_error(damaged) ==
          "byte 24: the checksum is wrong: the file was damaged after it was written");

    const std::string number = entry("b", 2, as_text(0.5));
    CHECK(state_error(sealed(number + number)) == "byte 38: 'b' a second time");
    CHECK(state_error(sealed(number + entry("a", 2, as_text(0.5)))) ==
          "byte 38: 'a' is out of order: it follows 'b'");
    CHECK(state_error(sealed(entry("b", 6, ""))) == "byte 29: the kind of an entry is 6; it must be 1 to 5");
    CHECK(state_error(sealed(entry("b", 0, ""))) == "byte 29: the kind of an entry is 0; it must be 1 to 5");
    CHECK(state_error(sealed(as_text(0xFFFFFFFFu))) ==
          "byte 28: truncated: a name needs 4294967295 bytes, but 0 are left");
    CHECK_THAT(state_error(sealed(entry("b", 2, "1234"))), contains("truncated: a number needs 8 bytes"));
    CHECK_THAT(state_error(sealed(entry("b", 1, "1234"))), contains("truncated: an integer needs 8 bytes"));
    CHECK_THAT(state_error(sealed(entry("b", 3, as_text(~std::uint64_t{0}) + "abc"))),
               contains("truncated: a text needs 18446744073709551615 bytes, but 3 are left"));
}

TEST_CASE("parse_state: extreme sizes throw an Error before any allocation") {
    const std::size_t before = memory::report().allocations;
    const auto extent = [](std::int32_t n) { return as_text(n); };
    CHECK_THAT(state_error(array_file("\2" + extent(1 << 30) + extent(1 << 28), "abcd")),
               contains("truncated: an array needs 1152921504606846976 bytes, but 4 are left"));
    CHECK_THAT(state_error(array_file("\2" + extent(1 << 30) + extent(1 << 30), "")),
               contains("byte 30: [shape] too many elements"));
    CHECK_THAT(state_error(array_file("\1" + extent(-1), "")),
               contains("byte 30: [shape] negative extent: (-1)"));
    CHECK_THAT(state_error(array_file("\xff", "")), contains("truncated: an extent"));
    CHECK_THAT(state_error(array_file("\7" + std::string(28, '\1'), "")), contains("more than 6 axes"));
    CHECK(memory::report().allocations == before);
}

TEST_CASE("TrainingState::load: a file that cannot be read or written is named") {
    const Folder folder;
    CHECK_THROWS_WITH(
        TrainingState::load(folder / "none"),
        "[TrainingState::load] cannot read '" + folder / "none" + "': No such file or directory");
    CHECK_THROWS_WITH(TrainingState::load(folder / "."), contains("not a regular file"));
    CHECK_THROWS_WITH(small_state().save(folder / "no/such"), contains("no/such"));
    write_bytes(folder / "text", "not a state at all");
    CHECK_THROWS_WITH(TrainingState::load(folder / "text"),
                      "[TrainingState::load] '" + folder / "text" +
                          "', byte 0: not a training state: the magic word is missing");
}

// ---- processes killed during saving ----

namespace {

// Returns a state in which all numbers are g. The length of the array in the state also depends on g.
TrainingState generation(std::int64_t g) {
    TrainingState state;
    state.put("generation", g);
    state.put("w", Array<double>::full({5000 + g % 7}, static_cast<double>(g)));
    return state;
}

}  // namespace

TEST_CASE(
    "TrainingState::save: a process killed at any file system call leaves a complete old or new state") {
    int killed = 0;
    for (std::int64_t n = 1;; ++n) {
        CAPTURE(n);
        const Folder folder;
        const std::string path = folder / "run.state";
        generation(1).save(path);
        const int status = in_child([&] {
            const FileFault fault(Fault::kill, n);
            generation(2).save(path);
        });
        const TrainingState found = TrainingState::load(path);
        CHECK(same(found, generation(found.get<std::int64_t>("generation"))));
        if (status == 0) {
            CHECK(same(found, generation(2)));
            break;
        }
        REQUIRE(was_killed(status));
        ++killed;
        generation(3).save(path);
        CHECK(same(TrainingState::load(path), generation(3)));
        CHECK(folder.files() <= 2);  // the killed process may leave a temporary file
    }
    CHECK(killed > 8);
}

TEST_CASE("TrainingState::save: a failing file system call throws an Error, or the state is saved") {
    const Fault kind = GENERATE(Fault::once, Fault::from_then_on);
    const int reason = GENERATE(EIO, ENOSPC, EACCES, EROFS, EMFILE);
    std::string messages;
    for (std::int64_t n = 1;; ++n) {
        CAPTURE(n, static_cast<int>(kind), reason);
        const Folder folder;
        const std::string path = folder / "run.state";
        generation(1).save(path);
        std::string words, call;
        {
            const FileFault fault(kind, n, reason);
            words = message_of([&] { generation(2).save(path); });
            if (FileFault::reached()) call = FileFault::calls()[static_cast<std::size_t>(n - 1)];
        }
        for (const char* needed : {"stat", "write", "fchmod", "fsync", "rename"})
            if (call == needed) CHECK(words != "no error");
        const TrainingState found = TrainingState::load(path);
        const auto g = found.get<std::int64_t>("generation");
        CHECK(same(found, generation(g)));
        if (words == "no error") {
            CHECK(g == 2);
        } else {  // the old file is kept, or the message says that the new file is written
            CHECK(g == (words.find("is written, but its folder could not be synced") != words.npos ? 2 : 1));
            CHECK_THAT(words, contains("[write_file] "));
            CHECK_THAT(words, contains("'" + path + "'"));
            messages += words;
        }
        generation(3).save(path);
        CHECK(same(TrainingState::load(path), generation(3)));
        // If a temporary file cannot be deleted, the temporary file remains in the folder.
        CHECK(folder.files() <= (kind == Fault::once ? 1 : 2));
        if (call.empty()) break;
    }
    if (kind == Fault::once) CHECK_THAT(messages, contains("its folder could not be synced"));
    CHECK_THAT(messages, contains(std::generic_category().message(reason)));
}

TEST_CASE("TrainingState::save: an existing temporary file is kept, and another name is tried") {
    int taken = 0;
    for (std::int64_t n = 1;; ++n) {
        const Folder folder;
        const std::string path = folder / "run.state";
        std::string words;
        {
            const FileFault fault(Fault::once, n, EEXIST);
            words = message_of([&] { generation(1).save(path); });
            if (!FileFault::reached()) break;
            if (FileFault::calls()[static_cast<std::size_t>(n - 1)] != "open") continue;
        }
        if (words == "no error") ++taken;
        CHECK(same(TrainingState::load(path), generation(1)));
    }
    CHECK(taken == 1);  // a second name was tried for the temporary file
}

TEST_CASE("TrainingState::load: a failing file system call throws an Error, or the state is loaded") {
    const Fault kind = GENERATE(Fault::once, Fault::from_then_on);
    const Folder folder;
    const std::string path = folder / "run.state";
    generation(1).save(path);
    for (std::int64_t n = 1;; ++n) {
        CAPTURE(n);
        bool right = false;
        const FileFault fault(kind, n);
        const std::string words = message_of([&] { right = same(TrainingState::load(path), generation(1)); });
        CHECK(right == (words == "no error"));
        if (!FileFault::reached()) break;
        CHECK(words == "[TrainingState::load] cannot read '" + path + "': Input/output error");
    }
}

TEST_CASE("TrainingState::save: concurrent processes leave a complete state and no temporary file") {
    const Folder folder;
    const std::string path = folder / "run.state";
    std::vector<pid_t> children;
    for (std::int64_t child = 1; child <= 4; ++child) {
        children.push_back(::fork());
        REQUIRE(children.back() >= 0);
        if (children.back() > 0) continue;
        int failed = 0;
        try {
            for (int i = 0; i < 60; ++i) generation(child).save(path);
        } catch (...) {
            failed = 1;
        }
        ::_exit(failed);
    }
    for (const pid_t child : children) {
        int status = -1;
        ::waitpid(child, &status, 0);
        CHECK(status == 0);
    }
    const TrainingState found = TrainingState::load(path);
    CHECK(same(found, generation(found.get<std::int64_t>("generation"))));
    CHECK(folder.files() == 1);
}

TEST_CASE(
    "TrainingState::save: temporary files of a killed process with the same number do not prevent saving") {
    const Folder folder;
    const int status = in_child([&] {
        const std::string temporary = folder / "run.state.tmp-" + std::to_string(::getpid()) + "-";
        for (int serial = 0; serial < 1000; ++serial) write_bytes(temporary + std::to_string(serial), "half");
        generation(3).save(folder / "run.state");
    });
    REQUIRE(status == 0);
    CHECK(same(TrainingState::load(folder / "run.state"), generation(3)));
}

TEST_CASE("TrainingState::save: a process killed at random times leaves a complete state") {
    const std::uint64_t seed = std::random_device()();
    CAPTURE(seed);
    Random random(seed);
    const Folder folder;
    const std::string path = folder / "run.state";
    std::int64_t reached = 0;
    const auto start_time = std::chrono::steady_clock::now();
    generation(reached).save(path);
    const std::chrono::duration<double, std::micro> once = std::chrono::steady_clock::now() - start_time;
    const auto longest = static_cast<std::int64_t>(10 * once.count()) + 1000;
    for (int round = 0; round < 50; ++round) {
        const int status = in_child([&] {
            die_in(random.whole(1, longest));
            for (std::int64_t g = reached + 1;; ++g) generation(g).save(path);
        });
        REQUIRE(was_killed(status));
        const TrainingState found = TrainingState::load(path);
        const auto g = found.get<std::int64_t>("generation");
        CHECK(g >= reached);
        CHECK(same(found, generation(g)));
        reached = g;
    }
}

TEST_CASE("TrainingState::load: a file larger than memory throws an Error", "[alone]") {
    const Folder folder;
    const std::string path = folder / "huge";
    write_bytes(path, "");
    std::error_code failed;
    std::filesystem::resize_file(path, std::uintmax_t{1} << 42, failed);  // the file is sparse
    if (failed) TALLY_SKIP("this file system has no files of 4 TB");
    CHECK_THROWS_WITH(TrainingState::load(path),
                      "[TrainingState::load] cannot read '" + path +
                          "': its 4398046511104 bytes are more than this machine's memory");
}

}  // namespace tally::test
