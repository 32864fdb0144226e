// Tests safetensors files. The Python library safetensors and tally read each other's files. An invalid file
// throws an Error with the file's name and the position of the faulty byte.
#include "tally/io/safetensors.hpp"

#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/base/utf8.hpp"
#include "tally/io/file_bytes.hpp"

namespace tally::test {
namespace {

using namespace std::string_literals;
using Tensors = std::map<std::string, detail::AnyArray>;

const std::string layers = TALLY_SOURCE_DIR "/tests/fixtures/layers/";

std::string file_of(const std::string& header, const std::string& numbers) {
    return as_text(std::uint64_t{header.size()}) + header + numbers;
}

std::string safetensors_error(const std::string& bytes) {
    const std::string words =
        message_of([&] { detail::parse_safetensors(as_bytes(bytes), "a.safetensors"); });
    const std::string start = "[load_safetensors] 'a.safetensors', ";
    return words.rfind(start, 0) == 0 ? words.substr(start.size()) : "(no place) " + words;
}

bool same(const detail::Safetensors& a, const detail::Safetensors& b) {
    if (a.metadata != b.metadata || a.tensors.size() != b.tensors.size()) return false;
    for (const auto& [name, any] : a.tensors) {
        if (!b.tensors.count(name)) return false;
        const bool equal = std::visit(
            [&, &key = name]<class A>(const A& x) {
                const A* const y = std::get_if<A>(&b.tensors.at(key));
                return y && same_bits(x, *y);
            },
            any);
        if (!equal) return false;
    }
    return true;
}

std::string random_name(Random& random) {
    std::string name;
    for (auto n = random.whole(0, 6); n > 0; --n) {
        const std::int64_t limit[] = {0x20, 0x80, 0x800, 0xD800, 0x110000};
        const auto kind = static_cast<std::size_t>(random.whole(0, 4));
        const std::int64_t low = kind == 0 ? 0 : kind == 4 ? 0xE000 : limit[kind - 1];
        append_utf8(name, static_cast<std::uint32_t>(random.whole(low, limit[kind] - 1)));
    }
    return name;
}

detail::Safetensors random_content(Random& random) {
    detail::Safetensors content;
    for (auto n = random.whole(0, 6); n > 0; --n) {
        detail::AnyArray& any = content.tensors[random_name(random)];
        switch (random.whole(0, 2)) {
            case 0:
                any = random.array<float>(random.shape(6));
                break;
            case 1:
                any = random.array<double>(random.shape(6));
                break;
            default:
                any = random.integers(random.shape(6), std::numeric_limits<std::int32_t>::min(),
                                      std::numeric_limits<std::int32_t>::max());
        }
    }
    for (auto n = random.whole(0, 3); n > 0; --n) content.metadata[random_name(random)] = random_name(random);
    return content;
}

detail::Safetensors strange_content() {
    const float inf = std::numeric_limits<float>::infinity();
    return {{{"floats", Array<float>({1, 3}, {1.5f, -0.0f, inf})},
             {"doubles", Array<double>({2}, {0.1, 2.0})},
             {"one", Array<double>({}, {7.25})},
             {"none", Array<float>(Shape{0, 3}, {})},
             {"ints", Array<std::int32_t>({3}, {-1, std::numeric_limits<std::int32_t>::max(), 3})},
             {"strange \"\\\n\1\u00e9\u2028\U0001F600", Array<float>({1}, {1})}},
            {{"made by", "safetensors \t \u00e9"}}};
}

}  // namespace

TEST_CASE("load_safetensors: files of the safetensors library are read and written again byte by byte") {
    CHECK(same(detail::load_safetensors(layers + "types.safetensors"), strange_content()));
    for (const char* name : {"types", "mlp", "mlp-pass", "attention", "attention-pass"}) {
        const std::string bytes = read_bytes(layers + name + ".safetensors");
        REQUIRE(!bytes.empty());
        CHECK(detail::safetensors_bytes(detail::parse_safetensors(as_bytes(bytes), name)) == bytes);
    }
}

TEST_CASE("save_safetensors: saved arrays are loaded bit by bit") {
    const std::uint64_t seed = GENERATE(range(1u, 200u));
    CAPTURE(seed);
    Random random(seed);
    const Folder folder;
    const detail::Safetensors content = random_content(random);
    detail::save_safetensors(folder / "a.safetensors", content.tensors, content.metadata);
    CHECK(same(detail::load_safetensors(folder / "a.safetensors"), content));
    CHECK(read_bytes(folder / "a.safetensors") == detail::safetensors_bytes(content));
}

TEST_CASE("load_safetensors: I64 numbers are read if they fit into int32") {
    const detail::Safetensors wide = detail::load_safetensors(layers + "wide.safetensors");
    CHECK(std::get<Array<std::int32_t>>(wide.tensors.at("labels")).to_vector() ==
          std::vector<std::int32_t>{3, std::numeric_limits<std::int32_t>::min(), 0});
    const std::string header = R"({"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})";
    CHECK(safetensors_error(file_of(header, as_text(std::int64_t{1} << 31))) ==
          "byte 9: 'n' holds 2147483648, which does not fit into int32");
}

namespace {

// Writes strange_content() to a file. A Python program reads the file and checks the arrays.
void check_reading(const std::string& way) {
    const Folder folder;
    const detail::Safetensors content = strange_content();
    detail::save_safetensors(folder / "a.safetensors", content.tensors, content.metadata);
    const std::string command = "/usr/bin/python3 '" TALLY_SOURCE_DIR "/tests/io/read_safetensors.py' " +
                                way + " '" + folder / "a.safetensors" + "' >'" + folder / "read" + "'";
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(read_bytes(folder / "read") ==
          "'doubles' 'F64' [2] 9a9999999999b93f0000000000000040\n"
          "'floats' 'F32' [1, 3] 0000c03f000000800000807f\n"
          "'ints' 'I32' [3] ffffffffffffff7f03000000\n"
          "'metadata made by' 'safetensors \\t \\xe9' [] \n"
          "'none' 'F32' [0, 3] \n"
          "'one' 'F64' [] 0000000000001d40\n"
          "'strange \"\\\\\\n\\x01\\xe9\\u2028\\U0001f600' 'F32' [1] 0000803f\n");
}

bool python_can(const std::string& statement) {
    return std::system(("/usr/bin/python3 -c '" + statement + "' 2>/dev/null").c_str()) == 0;
}

}  // namespace

TEST_CASE("save_safetensors: a reader written from the format description reads the file", "[alone]") {
    if (!python_can("")) TALLY_SKIP("no python3");
    check_reading("--description");
}

TEST_CASE("save_safetensors: the safetensors library reads the file", "[alone]") {
    if (!python_can("import safetensors, numpy")) TALLY_SKIP("no safetensors library");
    check_reading("--library");
}

TEST_CASE("parse_safetensors: every layout of the header that JSON allows is valid") {
    const std::string numbers = as_text(1.0f) + as_text(2.0f);
    for (const char* header : {
             R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
             R"({ "w" : { "shape" : [ 2 ] , "data_offsets" : [ 0 , 8 ] , "dtype" : "\u00463\u0032" } } )",
             "{\n\t\"\\u0077\":\r\n{\"data_offsets\":[0,8],\"dtype\":\"F32\",\"shape\":[2]},\"__metadata__\":"
             "{}}   ",
         }) {
        CAPTURE(header);
        const detail::Safetensors content =
            detail::parse_safetensors(as_bytes(file_of(header, numbers)), "a");
        CHECK(std::get<Array<float>>(content.tensors.at("w")).to_vector() == std::vector<float>{1, 2});
    }
    const detail::Safetensors words = detail::parse_safetensors(
        as_bytes(file_of(R"({"__metadata__":{"\"\\\/\b\f\n\r\t":"\u00e9\u20AC\uD83D\ude00\u0000"}})", "")),
        "a");
    CHECK(words.metadata.at("\"\\/\b\f\n\r\t") == "\u00e9\u20ac\U0001F600\0"s);
    CHECK(detail::parse_safetensors(as_bytes(file_of("{}", "")), "a").tensors.empty());
}

TEST_CASE("parse_safetensors: an invalid file throws an Error with its name and the byte") {
    CHECK(safetensors_error("") ==
          "byte 0: truncated: the length of the header needs 8 bytes, but 0 are left");
    CHECK(safetensors_error("1234567") ==
          "byte 0: truncated: the length of the header needs 8 bytes, but 7 are left");
    CHECK(safetensors_error(as_text(~std::uint64_t{0})) ==
          "byte 0: a header of 18446744073709551615 bytes; the format allows 100000000");
    CHECK(safetensors_error(as_text(std::uint64_t{100'000'000})) ==
          "byte 8: truncated: the header needs 100000000 bytes, but 0 are left");
    const auto header = [](const std::string& text) { return safetensors_error(file_of(text, "12345678")); };
    CHECK(header("") == "byte 8: '{' expected");
    CHECK(header(" {}") == "byte 8: '{' expected");
    CHECK(header("[]") == "byte 8: '{' expected");
    CHECK(header("{} x") == "byte 11: nothing but blanks may follow the header");
    CHECK(header("{}") == "byte 10: 8 bytes too many after the last tensor");
    CHECK(header(R"({"w")") == "byte 12: ':' expected");
    CHECK(header(R"({"w":{},})") == "byte 9: 'w' has no dtype, shape or data_offsets");
    CHECK(header(R"({"w")"s + "x") == "byte 12: ':' expected");
    CHECK(header("{") == "byte 9: '\"' expected");
    CHECK(header(R"({"w":[]})") == "byte 13: '{' expected");
    CHECK(header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})") == "byte 61: '}' expected");
    CHECK(header(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},})") == "byte 62: '\"' expected");

    const auto entry = [&](const std::string& members) { return header("{\"w\":{" + members + "}}"); };
    CHECK(entry(R"("dtype":"BF16")") == "byte 22: numbers of type 'BF16'; save them as F32, F64, I32 or I64");
    CHECK(entry(R"("dtype":"F32","dtype":"F32")") == "byte 28: 'dtype' a second time");
    CHECK(entry(R"("shape":[2],"shape":[2])") == "byte 26: 'shape' a second time");
    CHECK(entry(R"("data_offsets":[0,8],"data_offsets":[0,8])") == "byte 35: 'data_offsets' a second time");
    CHECK(entry(R"("dtype":"F32","shape":[2])") == "byte 9: 'w' has no dtype, shape or data_offsets");
    CHECK(entry(R"("stride":[2])") == "byte 14: unknown key 'stride'");
    CHECK(entry(R"("data_offsets":[0,8,9])") == "byte 29: data_offsets are two numbers");
    CHECK(entry(R"("shape":[-1])") == "byte 23: a whole number expected");
    CHECK(entry(R"("shape":[1.5])") == "byte 24: ']' expected");
    CHECK(entry(R"("shape":[01])") == "byte 25: a number that begins with 0");
    CHECK(entry(R"("shape":[99999999999999999999])") == "byte 41: the number is too large");
    CHECK(entry(R"("shape":[2147483648])") ==
          "byte 22: [shape] an axis is too long: (2147483648); the limit is 2147483647");
    CHECK_THAT(entry(R"("shape":[1073741824,1073741824])"), contains("byte 22: [shape] too many elements"));
    CHECK_THAT(entry(R"("shape":[1,1,1,1,1,1,1])"), contains("more than 6 axes"));
    CHECK(entry("\"shape\":" + std::string(100'000, '[')) == "byte 23: a whole number expected");
    CHECK(header("{\"w\":" + std::string(100'000, '{')) == "byte 14: '\"' expected");
}

TEST_CASE("parse_safetensors: data offsets that overlap, have gaps or exceed the file throw an Error") {
    const auto two = [](const std::string& a, const std::string& b) {
        return safetensors_error(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + a +
                                             R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + b + "}}",
                                         "12345678"));
    };
    CHECK(two("[0,4]", "[4,8]") == "(no place) no error");
    CHECK(two("[4,8]", "[0,4]") == "(no place) no error");
    CHECK_THAT(two("[0,4]", "[0,4]"),
               contains("'b': its numbers begin at 0, but the previous numbers end at 4"));
    CHECK_THAT(two("[0,4]", "[3,7]"), contains("'b': its numbers begin at 3"));
    CHECK_THAT(two("[0,4]", "[5,9]"), contains("'b': its numbers begin at 5"));
    CHECK_THAT(two("[1,5]", "[5,9]"), contains("'a': its numbers begin at 1"));
    CHECK_THAT(two("[0,4]", "[4,12]"), contains("go from 4 to 12, but (1) of F32 is 4 bytes"));
    CHECK_THAT(two("[0,4]", "[4,3]"), contains("go from 4 to 3, but (1) of F32 is 4 bytes"));
    CHECK_THAT(two("[0,4]", "[4,9223372036854775807]"), contains("to 9223372036854775807, but"));
    CHECK_THAT(
        safetensors_error(file_of(R"({"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}})", "12345678")),
        contains("truncated: 'a' needs 16 bytes, but 8 are left"));
    const std::size_t before = memory::report().allocations;
    CHECK_THAT(
        safetensors_error(file_of(
            R"({"a":{"dtype":"F32","shape":[1073741824,268435456],"data_offsets":[0,1152921504606846976]}})",
            "12345678")),
        contains("truncated: 'a' needs 1152921504606846976 bytes"));
    CHECK(memory::report().allocations == before);
}

TEST_CASE("parse_safetensors: names must be unique and valid UTF-8") {
    const auto name = [](const std::string& text) {
        return safetensors_error(file_of("{\"" + text + "\":", ""));
    };
    const std::string entry = R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    CHECK(safetensors_error(file_of("{\"w\":" + entry + ",\"\\u0077\":" + entry + "}", "")) ==
          "byte 62: 'w' a second time");
    CHECK(safetensors_error(file_of(R"({"__metadata__":{},"__metadata__":{}})", "")) ==
          "byte 27: '__metadata__' a second time");
    CHECK(safetensors_error(file_of(R"({"__metadata__":{"a":"b","a":"c"}})", "")) ==
          "byte 33: 'a' a second time");
    CHECK(safetensors_error(file_of(R"({"__metadata__":{"a":1}})", "")) == "byte 29: '\"' expected");
    CHECK(name("a\nb") == "byte 11: a control character in a string");
    CHECK(name("a\\x") == "byte 11: not an escape sequence of JSON");
    CHECK(safetensors_error(file_of("{\"a\\", "")) == "byte 11: not an escape sequence of JSON");
    CHECK(name("\\u12G4") == "byte 10: four hexadecimal digits expected");
    CHECK(safetensors_error(file_of("{\"\\u12", "")) == "byte 10: four hexadecimal digits expected");
    CHECK(name("\\uDC00") == "byte 10: one half of a surrogate pair");
    CHECK(name("\\uD800\\u0041") == "byte 10: one half of a surrogate pair");
    CHECK(name("\\uD800 ") == "byte 16: the second half of a surrogate pair expected");
    CHECK(safetensors_error(file_of("{\"never", "")) == "byte 15: a string that does not end");
    for (const char* bad :
         {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "\xC3"}) {
        CHECK(name(bad) == "byte 10: not UTF-8");
        CHECK_THROWS_WITH(detail::safetensors_bytes({{{bad, Array<float>({1}, {1})}}, {}}),
                          contains("not UTF-8"));
    }
    CHECK_THROWS_WITH(detail::safetensors_bytes({{{"__metadata__", Array<float>({1}, {1})}}, {}}),
                      "[save_safetensors] the name '__metadata__' is reserved; use another name");
}

TEST_CASE("parse_safetensors: a truncated file throws an Error, and a flipped bit never crashes") {
    const std::string whole = detail::safetensors_bytes(strange_content());
    for (std::size_t length = 0; length < whole.size(); ++length) {
        CAPTURE(length);
        CHECK_THAT(safetensors_error(whole.substr(0, length)), contains("byte "));
    }
    CHECK_THAT(safetensors_error(whole + "x"), contains("1 bytes too many"));
    int rejected = 0, accepted = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
            const std::string answer = safetensors_error(damaged);
            REQUIRE((answer == "(no place) no error" || answer.rfind("byte ", 0) == 0));
            ++(answer[0] == 'b' ? rejected : accepted);
        }
    }
    CHECK(rejected > 1000);
    CHECK(accepted > 0);  // some changes only give different numbers or names
}

TEST_CASE("load_safetensors: a file that cannot be read or written is named") {
    const Folder folder;
    CHECK_THROWS_WITH(detail::load_safetensors(folder / "none"),
                      "[load_safetensors] cannot read '" + folder / "none" + "': No such file or directory");
    CHECK_THROWS_WITH(detail::save_safetensors(folder / "no/such", {}), contains("no/such"));
    write_bytes(folder / "a", "short");
    CHECK_THROWS_WITH(detail::load_safetensors(folder / "a"),
                      contains("[load_safetensors] '" + folder / "a" + "', byte 0: "));
}

}  // namespace tally::test
