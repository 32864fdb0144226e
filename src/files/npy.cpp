// The .npy format: a magic word, a version, a Python dict in plain text that says type, order and shape,
// and the numbers.
#include "tally/files/npy.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "tally/base/error.hpp"
#include "tally/base/write_file.hpp"

namespace tally {
namespace {

static_assert(std::endian::native == std::endian::little, "the numbers are written as they lie in memory");

constexpr std::string_view magic = "\x93NUMPY";

template <class S> constexpr std::string_view type_name = std::is_same_v<S, float>    ? "<f4"
                                                          : std::is_same_v<S, double> ? "<f8"
                                                                                      : "<i4";

class Reader {
public:
    explicit Reader(const std::string& path) : path_(path) {
        std::error_code failed;
        const auto refuse = [&](const std::string& why) {
            throw Error("[load_npy] cannot read '" + path + "': " + why);
        };
        const bool regular = std::filesystem::is_regular_file(std::filesystem::status(path, failed));
        if (failed) refuse(failed.message());
        if (!regular) refuse("not a regular file");
        size_ = std::filesystem::file_size(path, failed);
        if (failed) refuse(failed.message());
        file_.open(path, std::ios::binary);
        if (!file_) refuse(std::generic_category().message(errno));
    }

    std::uint64_t size() const { return size_; }

    void read(void* to, std::size_t bytes, std::uint64_t at) {
        if (bytes == 0) return;
        file_.seekg(static_cast<std::streamoff>(at));
        file_.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
        if (!file_) fail(at, "truncated: " + std::to_string(bytes) + " bytes expected from here");
    }

    [[noreturn]] void fail(std::uint64_t at, const std::string& what) const {
        throw Error("[load_npy] '" + path_ + "', byte " + std::to_string(at) + ": " + what);
    }

private:
    std::string path_;
    std::ifstream file_;
    std::uint64_t size_ = 0;
};

struct Header {
    std::string type;
    std::uint64_t type_at = 0;
    Shape shape;
    std::uint64_t data_at = 0;
};

// Reads the one dict that a header may hold: {'descr': '<f4', 'fortran_order': False, 'shape': (6, 3), }
class HeaderText {
public:
    HeaderText(const Reader& reader, std::string_view text, std::uint64_t at)
        : reader_(reader), text_(text), start_(at) {}

    Header parse() {
        expect('{');
        while (!accept('}')) {
            const std::size_t key_at = at_;
            const std::string key = quoted();
            expect(':');
            if (key == "descr") {
                type_at_ = start_ + at_;
                once(type_, key_at, key) = quoted();
            } else if (key == "fortran_order") {
                const std::string_view word = literal();
                if (word == "True")
                    fail("Fortran order; save the array in C order (numpy.ascontiguousarray)");
                if (word != "False") fail("True or False expected");
                once(c_order_, key_at, key) = true;
            } else if (key == "shape") {
                once(shape_, key_at, key) = tuple();
            } else {
                fail("unknown key '" + key + "'");
            }
            if (!accept(',') && peek() != '}') fail("',' or '}' expected");
        }
        skip_blanks();
        if (at_ != text_.size()) fail("nothing may follow the header's '}'");
        if (!type_ || !c_order_ || !shape_) fail("the header lacks descr, fortran_order or shape");
        return {*type_, type_at_, *shape_, 0};
    }

private:
    [[noreturn]] void fail(const std::string& what) const { reader_.fail(start_ + at_, what); }

    template <class T>
    std::optional<T>& once(std::optional<T>& place, std::size_t key_at, const std::string& key) {
        if (place) reader_.fail(start_ + key_at, "'" + key + "' a second time");
        return place;
    }

    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    }
    char peek() {
        skip_blanks();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool accept(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }
    void expect(char wanted) {
        if (!accept(wanted)) fail(std::string("'") + wanted + "' expected");
    }
    std::string quoted() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') fail("a quoted word expected");
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) fail("a quote that does not end");
        const std::string word(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return word;
    }
    std::string_view literal() {
        skip_blanks();
        std::size_t end = at_;
        while (end < text_.size() && ((text_[end] | 0x20) >= 'a' && (text_[end] | 0x20) <= 'z')) ++end;
        const std::string_view word = text_.substr(at_, end - at_);
        at_ = end;
        return word;
    }
    std::int64_t number() {
        const char first = peek();
        if (first < '0' || first > '9') fail("an extent expected");
        std::int64_t value = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            const std::int64_t digit = text_[at_] - '0';
            if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10) fail("an absurd extent");
            value = value * 10 + digit;
        }
        return value;
    }
    Shape tuple() {
        const std::size_t tuple_at = at_;
        std::vector<std::int64_t> extents;
        expect('(');
        while (!accept(')')) {
            extents.push_back(number());
            if (!accept(',') && peek() != ')') fail("',' or ')' expected");
        }
        try {
            return Shape(std::span<const std::int64_t>(extents));
        } catch (const Error& error) {
            reader_.fail(start_ + tuple_at, error.what());
        }
    }

    const Reader& reader_;
    std::string_view text_;
    std::uint64_t start_;
    std::size_t at_ = 0;
    std::optional<std::string> type_;
    std::uint64_t type_at_ = 0;
    std::optional<bool> c_order_;
    std::optional<Shape> shape_;
};

Header read_header(Reader& reader) {
    unsigned char start[12] = {};  // magic (6), version (2), length of the text (2, or 4 from version 2.0)
    if (reader.size() < 10)
        reader.fail(reader.size(), "truncated: a .npy file begins with at least 10 bytes");
    reader.read(start, 10, 0);
    if (std::memcmp(start, magic.data(), magic.size()) != 0)
        reader.fail(0, "not a .npy file: the magic word is missing");
    const bool two = start[6] == 2;
    if ((start[6] != 1 && !two) || start[7] != 0)
        reader.fail(6, "version " + std::to_string(start[6]) + "." + std::to_string(start[7]) +
                           "; known are 1.0 and 2.0");
    const std::uint64_t text_at = two ? 12 : 10;
    if (reader.size() < text_at) reader.fail(reader.size(), "truncated in the length of the header");
    if (two) reader.read(start + 8, 4, 8);
    std::uint64_t length = start[8] + 256u * start[9];
    if (two) length += (start[10] + 256u * start[11]) * std::uint64_t{65536};
    if (length > reader.size() - text_at)
        reader.fail(8, "a header of " + std::to_string(length) + " bytes in a file of " +
                           std::to_string(reader.size()));
    std::string text(length, '\0');
    reader.read(text.data(), length, text_at);
    Header header = HeaderText(reader, text, text_at).parse();
    header.data_at = text_at + length;
    return header;
}

std::vector<std::int32_t> narrowed(const Reader& reader, const std::vector<std::int64_t>& wide,
                                   std::uint64_t data_at) {
    std::vector<std::int32_t> values(wide.size());
    for (std::size_t i = 0; i < wide.size(); ++i) {
        values[i] = static_cast<std::int32_t>(wide[i]);
        if (values[i] != wide[i])
            reader.fail(data_at + i * sizeof wide[i], std::to_string(wide[i]) + " does not fit into int32");
    }
    return values;
}

}  // namespace

template <class S> void save_npy(const std::string& path, const Array<S>& array) {
    const Array<S> here = array.to(Device::cpu);
    std::string header = "{'descr': '" + std::string(type_name<S>) + "', 'fortran_order': False, 'shape': (";
    for (const std::int64_t extent : here.shape())
        header += std::to_string(extent) + ",";  // (4,) is Python's tuple of one
    header += "), }";
    header.append(63 - (magic.size() + 4 + header.size()) % 64,
                  ' ');  // the numbers begin at a multiple of 64
    header += '\n';
    std::string file(magic);
    file += {'\1', '\0', static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
    file += header;
    const std::span<const S> numbers = here.span();
    file.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    write_file_atomically(path, file);
}

namespace {

template <class S> Array<S> read_npy(const std::string& path) {
    Reader reader(path);
    const Header header = read_header(reader);
    const bool wide = std::is_same_v<S, std::int32_t> && header.type == "<i8";
    if (header.type != type_name<S> && !wide)
        reader.fail(header.type_at, "holds numbers of type '" + header.type + "', asked for '" +
                                        std::string(type_name<S>) + "'");
    const std::size_t bytes = header.shape.size() * (wide ? 8 : sizeof(S));
    const std::uint64_t present = reader.size() - header.data_at;
    if (present < bytes)
        reader.fail(reader.size(), "truncated: " + to_string(header.shape) + " needs " +
                                       std::to_string(bytes) + " bytes of numbers, present are " +
                                       std::to_string(present));
    if (present > bytes)
        reader.fail(header.data_at + bytes, std::to_string(present - bytes) + " bytes too many after " +
                                                to_string(header.shape) + " of '" + header.type + "'");
    if constexpr (std::is_same_v<S, std::int32_t>) {
        if (wide) {
            std::vector<std::int64_t> numbers(header.shape.size());
            reader.read(numbers.data(), bytes, header.data_at);
            return Array<S>(header.shape, narrowed(reader, numbers, header.data_at));
        }
    }
    Array<S> array = Array<S>::empty(header.shape);
    reader.read(array.raw(), bytes, header.data_at);
    return array;
}

}  // namespace

template <class S> Array<S> load_npy(const std::string& path) {
    try {
        return read_npy<S>(path);
    } catch (const std::bad_alloc&) {
        throw Error("[load_npy] cannot read '" + path + "': it does not fit into memory");
    }
}

template void save_npy(const std::string&, const Array<float>&);
template void save_npy(const std::string&, const Array<double>&);
template void save_npy(const std::string&, const Array<std::int32_t>&);
template Array<float> load_npy(const std::string&);
template Array<double> load_npy(const std::string&);
template Array<std::int32_t> load_npy(const std::string&);

}  // namespace tally
