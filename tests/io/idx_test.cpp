// Tests Idx::load() with plain and gzip files of all shapes, and with every kind of invalid file.
#include "tally/io/idx.hpp"

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "folder.hpp"
#include "io/bytes.hpp"
#include "tally/base/error.hpp"

using namespace tally;
using namespace tally::test;
using namespace std::string_literals;

namespace {

// Returns the error message without the beginning "[Idx::load] 'x', ", or returns "no error".
std::string idx_error(const std::string& file) {
    try {
        detail::parse_idx(bytes_of(file), "x");
    } catch (const Error& error) {
        const std::string words = error.what(), start = "[Idx::load] 'x', ";
        return words.rfind(start, 0) == 0 ? words.substr(start.size()) : "(no place) " + words;
    }
    return "no error";
}

std::string numbers(std::size_t count, std::mt19937& generator) {
    std::string text(count, '\0');
    for (char& each : text) each = static_cast<char>(generator());
    return text;
}

std::string text_of(const Idx& idx) { return {idx.values.begin(), idx.values.end()}; }

}  // namespace

TEST_CASE("parse_idx: plain and gzip files, also of several members, yield the written values") {
    const unsigned seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937 generator(seed);
    for (int round = 0; round < 50; ++round) {
        std::vector<std::uint32_t> extents(1 + generator() % 3);
        std::vector<std::int64_t> wanted;
        for (std::uint32_t& extent : extents)
            wanted.push_back(extent = static_cast<std::uint32_t>(generator() % 40));
        const Shape shape{std::span<const std::int64_t>(wanted)};
        const std::string values = numbers(shape.size(), generator);
        const std::string file = idx_header(extents) + values;
        const std::size_t cut = generator() % (file.size() + 1);
        for (const std::string& each :
             {file, gzipped(file), gzipped(file.substr(0, cut)) + gzipped("") + gzipped(file.substr(cut))}) {
            const Idx idx = detail::parse_idx(bytes_of(each), "x");
            CHECK(idx.shape == shape);
            CHECK(text_of(idx) == values);
        }
    }
}

TEST_CASE("parse_idx: a file larger than the buffer is read completely") {
    std::mt19937 generator(3);
    const std::string values = numbers(std::size_t{3001} * 1000, generator);
    const std::string file = idx_header({3001, 1000}) + values;
    CHECK(text_of(detail::parse_idx(bytes_of(file), "x")) == values);
    CHECK(text_of(detail::parse_idx(bytes_of(gzipped(file)), "x")) == values);
}

TEST_CASE("parse_idx: an invalid file throws an Error with its name and the byte") {
    CHECK(idx_error("") == "byte 0: truncated: an IDX file begins with four bytes");
    CHECK(idx_error("\0\0\10"s) == "byte 3: truncated: an IDX file begins with four bytes");
    CHECK(idx_error("<html>") == "byte 0: not an IDX file: it begins with 3c 68, not with two zeros");
    CHECK(idx_error("\0\1\10\1"s) == "byte 0: not an IDX file: it begins with 00 01, not with two zeros");
    CHECK(idx_error(idx_header({1}, 0x0d) + "abcd") ==
          "byte 2: elements of type 0d; save them as unsigned bytes, type 08");
    CHECK(idx_error("\0\0\10\0"s) == "byte 3: 0 axes; save the data with 1, 2 or 3 axes");
    CHECK(idx_error(idx_header({1, 1, 1, 1}) + "a") == "byte 3: 4 axes; save the data with 1, 2 or 3 axes");
    CHECK(idx_error(idx_header({2, 3}).substr(0, 10)) == "byte 10: truncated within the extents of 2 axes");
    CHECK(idx_error(idx_header({2, 3}) + "abcd") ==
          "byte 16: truncated: (2, 3) needs 6 bytes, but there are 4");
    CHECK(idx_error(idx_header({2, 3}) + "abcdefg") == "byte 18: bytes too many after (2, 3)");
    CHECK(idx_error(idx_header({0}) + "a") == "byte 8: bytes too many after (0)");
}

TEST_CASE("parse_idx: extents beyond the file's end throw an Error and allocate nothing") {
    CHECK_THAT(idx_error(idx_header({0xffffffff})),
               contains("byte 4: [shape] an axis is too long: (4294967295)"));
    CHECK_THAT(idx_error(idx_header({1u << 30, 1u << 30, 1u << 30})),
               contains("byte 4: [shape] too many elements"));
    // The header describes 2^58 bytes, and an allocation of this size would throw bad_alloc, not Error.
    const std::string much = idx_header({1u << 30, 1u << 28});
    CHECK_THAT(idx_error(much + "ab"), contains("needs 288230376151711744 bytes, but there are 2"));
    CHECK_THAT(idx_error(gzipped(much + "ab")), contains("needs 288230376151711744 bytes, but there are 2"));
}

TEST_CASE("parse_idx: an invalid gzip file throws an Error with the byte before or after unpacking") {
    const std::string file = idx_header({2, 3}) + "abcdef", packed = gzipped(file);
    CHECK(idx_error(gzipped("<html>")) ==
          "unpacked byte 0: not an IDX file: it begins with 3c 68, not with two zeros");
    CHECK(idx_error(gzipped(file.substr(0, 15))) ==
          "unpacked byte 15: truncated: (2, 3) needs 6 bytes, but there are 3");
    CHECK(idx_error(gzipped(file + "g")) == "unpacked byte 18: bytes too many after (2, 3)");
    CHECK(idx_error(packed + gzipped("g")) == "unpacked byte 18: bytes too many after (2, 3)");
    CHECK(idx_error(packed + "xyz") ==
          "byte " + std::to_string(packed.size()) + ": 3 bytes too many after the gzip data");
    for (std::size_t cut = 2; cut < packed.size(); ++cut)
        CHECK(idx_error(packed.substr(0, cut)) ==
              "byte " + std::to_string(cut) + ": truncated: the gzip data is incomplete");
    std::string broken = packed;
    broken[packed.size() - 6] = static_cast<char>(broken[packed.size() - 6] ^ 1);
    CHECK_THAT(idx_error(broken), contains("broken gzip: incorrect data check"));
    broken = packed;
    broken[2] = 9;
    CHECK_THAT(idx_error(broken), contains("broken gzip: unknown compression method"));
}

TEST_CASE("parse_idx: a changed byte of a gzip file throws an Error or has no effect") {
    const std::string file = idx_header({2, 3}) + "abcdef", packed = gzipped(file);
    for (std::size_t at = 0; at < packed.size(); ++at) {
        std::string changed = packed;
        changed[at] = static_cast<char>(changed[at] ^ 0x55);
        const std::string words = idx_error(changed);
        INFO("byte " << at << ": " << words);
        // A gzip header contains a time and the operating system, and changes in these bytes are harmless.
        CHECK((words != "no error" ||
               (text_of(detail::parse_idx(bytes_of(changed), "x")) == "abcdef" && at < 10)));
    }
}

TEST_CASE("Idx::load: files are read from disk, and an unreadable file is named") {
    const Folder folder;
    write_bytes(folder / "plain", idx_header({3}) + "abc");
    write_bytes(folder / "packed", gzipped(idx_header({3}) + "abc"));
    CHECK(text_of(Idx::load(folder / "plain")) == "abc");
    CHECK(text_of(Idx::load(folder / "packed")) == "abc");
    write_bytes(folder / "bad", "PK\3\4");
    CHECK_THROWS_WITH(Idx::load(folder / "bad"),
                      contains("[Idx::load] '" + folder / "bad" + "', byte 0: not an IDX"));
    CHECK_THROWS_WITH(Idx::load(folder / "none"),
                      "[Idx::load] cannot read '" + folder / "none" + "': No such file or directory");
    CHECK_THROWS_WITH(Idx::load(folder / "."),
                      "[Idx::load] cannot read '" + folder / "." + "': not a regular file");
}
