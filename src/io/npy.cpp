// save_npy() and load_npy() write and parse the .npy format of NumPy. A .npy file contains a magic word, a
// version, the text of a Python dict (type, order, shape), and the numbers.
#include "tally/io/npy.hpp"

#include <bit>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tally/base/write_file.hpp"
#include "tally/io/file_bytes.hpp"

namespace tally {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written without conversion");

constexpr std::string_view npy_magic = "\x93NUMPY";

template <class S> constexpr std::string_view npy_type = std::is_same_v<S, float>    ? "<f4"
                                                         : std::is_same_v<S, double> ? "<f8"
                                                                                     : "<i4";

struct NpyHeader {
    std::string type;
    std::uint64_t type_at = 0;
    Shape shape;
};

// Parses the dict of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (6, 3), }
class HeaderText {
public:
    HeaderText(const ByteReader& reader, std::string_view text, std::uint64_t at)
        : reader_(reader), text_(text), start_(at) {}

    NpyHeader parse() {
        require_next('{');
        while (!accept('}')) {
            const std::size_t key_at = at_;
            const std::string key = quoted();
            require_next(':');
            if (key == "descr") {
                type_at_ = start_ + at_;
                once(type_, key_at, key) = quoted();
            } else if (key == "fortran_order") {
                const std::string_view word = literal();
                if (word == "True")
                    throw_here("Fortran order; save the array in C order (numpy.ascontiguousarray)");
                if (word != "False") throw_here("True or False expected");
                once(c_order_, key_at, key) = true;
            } else if (key == "shape") {
                once(shape_, key_at, key) = tuple();
            } else {
                throw_here("unknown key '", key, "'");
            }
            if (!accept(',') && peek() != '}') throw_here("',' or '}' expected");
        }
        skip_blanks();
        if (at_ != text_.size()) throw_here("nothing may follow the header's '}'");
        if (!type_ || !c_order_ || !shape_) throw_here("the header has no descr, fortran_order or shape");
        return {*type_, type_at_, *shape_};
    }

private:
    template <class... Parts> [[noreturn]] void throw_here(const Parts&... parts) const {
        reader_.throw_at(start_ + at_, parts...);
    }

    template <class T>
    std::optional<T>& once(std::optional<T>& place, std::size_t key_at, const std::string& key) {
        if (place) reader_.throw_at(start_ + key_at, "'", key, "' a second time");
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
    void require_next(char wanted) {
        if (!accept(wanted)) throw_here("'", std::string(1, wanted), "' expected");
    }
    std::string quoted() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') throw_here("a quoted word expected");
        const std::size_t end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) throw_here("a quote that does not end");
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
        if (first < '0' || first > '9') throw_here("an extent expected");
        std::int64_t value = 0;
        for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            const std::int64_t digit = text_[at_] - '0';
            if (value > (std::numeric_limits<std::int64_t>::max() - digit) / 10)
                throw_here("the extent is too large");
            value = value * 10 + digit;
        }
        return value;
    }
    Shape tuple() {
        const std::size_t tuple_at = at_;
        std::vector<std::int64_t> extents;
        require_next('(');
        while (!accept(')')) {
            extents.push_back(number());
            if (!accept(',') && peek() != ')') throw_here("',' or ')' expected");
        }
        return reader_.shape(extents, start_ + tuple_at);
    }

    const ByteReader& reader_;
    std::string_view text_;
    std::uint64_t start_;
    std::size_t at_ = 0;
    std::optional<std::string> type_;
    std::uint64_t type_at_ = 0;
    std::optional<bool> c_order_;
    std::optional<Shape> shape_;
};

// Reads the magic word (6 bytes), version (2), length of the dict (2, or 4 in version 2.0), and dict.
NpyHeader read_header(ByteReader& reader) {
    if (reader.size() < 10)
        reader.throw_at(reader.size(), "truncated: a .npy file begins with at least 10 bytes");
    if (reader.text(npy_magic.size(), "the magic word") != npy_magic)
        reader.throw_at(0, "not a .npy file: the magic word is missing");
    const int major = reader.number<std::uint8_t>("the version");
    const int minor = reader.number<std::uint8_t>("the version");
    if ((major != 1 && major != 2) || minor != 0)
        reader.throw_at(6, "version ", major, ".", minor, "; save the file in version 1.0 or 2.0");
    if (major == 2 && reader.left() < 4)
        reader.throw_at(reader.size(), "truncated in the length of the header");
    const char* what = "the length of the header";
    const std::uint64_t length =
        major == 2 ? reader.number<std::uint32_t>(what) : reader.number<std::uint16_t>(what);
    if (length > reader.left())
        reader.throw_at(8, "a header of ", length, " bytes in a file of ", reader.size());
    const std::uint64_t text_at = reader.at();
    return HeaderText(reader, reader.text(length, "the header"), text_at).parse();
}

}  // namespace

template <class S> void save_npy(const std::string& path, const Array<S>& array) {
    const Array<S> here = array.to(Device::cpu);
    std::string header = "{'descr': '" + std::string(npy_type<S>) + "', 'fortran_order': False, 'shape': (";
    for (const std::int64_t extent : here.shape())
        header += std::to_string(extent) + ",";  // Python writes a tuple of one number as (4,)
    header += "), }";
    header.append(63 - (npy_magic.size() + 4 + header.size()) % 64,
                  ' ');  // the numbers begin at a multiple of 64
    header += '\n';
    std::string file(npy_magic);
    file += {'\1', '\0', static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
    file += header;
    const std::span<const S> numbers = here.span();
    file.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    write_file_atomically(path, file);
}

namespace {

template <class S> Array<S> read_npy(const std::string& path) {
    const std::vector<std::byte> file = read_file("load_npy", path);
    ByteReader reader("load_npy", file, path);
    const NpyHeader header = read_header(reader);
    const bool wide = std::is_same_v<S, std::int32_t> && header.type == "<i8";
    if (header.type != npy_type<S> && !wide)
        reader.throw_at(header.type_at, "numbers of type '", header.type, "', but '", npy_type<S>,
                        "' was requested; load the type of the file");
    const std::size_t bytes = header.shape.size() * (wide ? 8 : sizeof(S));
    if (reader.left() < bytes)
        reader.throw_at(reader.size(), "truncated: ", header.shape, " needs ", bytes,
                        " bytes of numbers, but there are ", reader.left());
    const std::uint64_t data_at = reader.at();
    const std::span<const std::byte> numbers = reader.take(bytes, "the numbers");
    if (reader.left() > 0)
        reader.throw_here(reader.left(), " bytes too many after ", header.shape, " of '", header.type, "'");
    if constexpr (std::is_same_v<S, std::int32_t>)
        if (wide)
            return narrowed(header.shape, numbers, [&](std::int64_t value, std::size_t index) {
                reader.throw_at(data_at + index * sizeof value, value, " does not fit into int32");
            });
    return array_of<S>(header.shape, numbers);
}

}  // namespace

template <class S> Array<S> load_npy(const std::string& path) {
    return within_memory("load_npy", path, [&] { return read_npy<S>(path); });
}

template void save_npy(const std::string&, const Array<float>&);
template void save_npy(const std::string&, const Array<double>&);
template void save_npy(const std::string&, const Array<std::int32_t>&);
template Array<float> load_npy(const std::string&);
template Array<double> load_npy(const std::string&);
template Array<std::int32_t> load_npy(const std::string&);

}  // namespace tally
