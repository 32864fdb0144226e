// Parses IDX files, which may be compressed by gzip. An IDX file contains two zero bytes, the element type,
// the number of axes, the extents and the elements. Each extent has four bytes. All numbers are big-endian.
#include "tally/io/idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "tally/base/error.hpp"
#include "tally/io/file_bytes.hpp"

namespace tally {
namespace {

constexpr std::uint8_t unsigned_bytes = 0x08;
constexpr std::uint8_t most_axes = 3;
constexpr std::size_t piece = std::size_t{1} << 16;

std::string hex(std::uint8_t byte) {
    std::array<char, 3> text{};
    std::snprintf(text.data(), text.size(), "%02x", byte);
    return text.data();
}

// Reads the content of a file sequentially, and decompresses a file in gzip format.
class Content {
public:
    Content(std::span<const std::byte> file, const std::string& name)
        : file_(file), name_(name), packed_(starts_a_member(0)) {
        if (packed_ && inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
            throw Error("Idx::load", "zlib cannot start to unpack '", name, "'");
    }
    Content(const Content&) = delete;
    Content& operator=(const Content&) = delete;
    ~Content() {
        if (packed_) inflateEnd(&stream_);
    }

    // Returns the number of bytes read, which is smaller than to.size() only at the end of the content.
    std::size_t read(std::span<std::uint8_t> to) {
        const std::size_t count = packed_ ? unpack(to) : copy(to);
        given_ += count;
        return count;
    }

    std::uint64_t given() const { return given_; }

    template <class... Parts> [[noreturn]] void throw_at(std::uint64_t at, const Parts&... parts) const {
        throw Error("Idx::load", "'", name_, packed_ ? "', unpacked byte " : "', byte ", at, ": ", parts...);
    }

private:
    bool starts_a_member(std::size_t at) const {
        return file_.size() - at >= 2 && file_[at] == std::byte{0x1f} && file_[at + 1] == std::byte{0x8b};
    }

    template <class... Parts> [[noreturn]] void throw_packed(const Parts&... parts) const {
        throw Error("Idx::load", "'", name_, "', byte ", at_, ": ", parts...);
    }

    std::size_t copy(std::span<std::uint8_t> to) {
        const std::size_t count = std::min(to.size(), file_.size() - at_);
        if (count > 0) std::memcpy(to.data(), file_.data() + at_, count);
        at_ += count;
        return count;
    }

    std::size_t unpack(std::span<std::uint8_t> to) {
        std::size_t count = 0;
        while (count < to.size() && !between_members_or_at_the_end()) {
            const auto in = static_cast<uInt>(std::min(piece, file_.size() - at_));
            const auto out = static_cast<uInt>(std::min(piece, to.size() - count));
            // zlib only reads the input, but requires a pointer to non-const unless ZLIB_CONST is defined
            stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(file_.data() + at_));
            stream_.avail_in = in;
            stream_.next_out = to.data() + count;
            stream_.avail_out = out;
            const int result = inflate(&stream_, Z_NO_FLUSH);
            at_ += in - stream_.avail_in;
            count += out - stream_.avail_out;
            if (result == Z_STREAM_END)
                member_ended_ = true;
            else if (result == Z_BUF_ERROR && at_ == file_.size())
                throw_packed("truncated: the gzip data is incomplete");
            else if (result != Z_OK)
                throw_packed("broken gzip: ", stream_.msg ? stream_.msg : zError(result));
        }
        return count;
    }

    // Continues with the next gzip member. Like gzip, joins the contents of concatenated gzip files.
    bool between_members_or_at_the_end() {
        if (!member_ended_) return false;
        if (at_ == file_.size()) return true;
        if (!starts_a_member(at_)) throw_packed(file_.size() - at_, " bytes too many after the gzip data");
        inflateReset(&stream_);
        member_ended_ = false;
        return false;
    }

    std::span<const std::byte> file_;
    const std::string& name_;
    bool packed_;
    bool member_ended_ = false;
    std::size_t at_ = 0;
    std::uint64_t given_ = 0;
    z_stream stream_{};
};

Shape read_shape(Content& content) {
    std::array<std::uint8_t, 4> word{};
    if (content.read(word) < word.size())
        content.throw_at(content.given(), "truncated: an IDX file begins with four bytes");
    if (word[0] != 0 || word[1] != 0)
        content.throw_at(0, "not an IDX file: it begins with ", hex(word[0]), " ", hex(word[1]),
                         ", not with two zeros");
    if (word[2] != unsigned_bytes)
        content.throw_at(2, "elements of type ", hex(word[2]), "; save them as unsigned bytes, type 08");
    const std::uint8_t axes = word[3];
    if (axes < 1 || axes > most_axes) content.throw_at(3, axes, " axes; save the data with 1, 2 or 3 axes");
    std::vector<std::int64_t> extents;
    for (std::uint8_t axis = 0; axis < axes; ++axis) {
        if (content.read(word) < word.size())
            content.throw_at(content.given(), "truncated within the extents of ", axes, " axes");
        extents.push_back(std::int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
    }
    try {
        return Shape(std::span<const std::int64_t>(extents));
    } catch (const Error& error) {
        content.throw_at(4, error.what());
    }
}

}  // namespace

Idx detail::parse_idx(std::span<const std::byte> file, const std::string& name) {
    Content content(file, name);
    Idx idx{read_shape(content), {}};
    const std::size_t size = idx.shape.size();
    while (idx.values.size() < size) {  // allocates memory only for bytes that the file has
        const std::size_t before = idx.values.size(),
                          wanted = std::min(size - before, std::max(piece, before));
        idx.values.resize(before + wanted);
        const std::size_t present = content.read(std::span(idx.values).subspan(before));
        if (present < wanted)
            content.throw_at(content.given(), "truncated: ", idx.shape, " needs ", size,
                             " bytes, but there are ", before + present);
    }
    std::array<std::uint8_t, 1> more{};  // reading beyond the end also checks gzip's checksum
    const std::uint64_t end = content.given();
    if (content.read(more) > 0) content.throw_at(end, "bytes too many after ", idx.shape);
    return idx;
}

Idx Idx::load(const std::string& path) {
    const std::vector<std::byte> bytes = read_file("Idx::load", path);
    return within_memory("Idx::load", path, [&] { return detail::parse_idx(bytes, path); });
}

}  // namespace tally
