// Writes training states to files, and checks all bytes that are read.
#include "tally/io/training_state.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tally/base/write_file.hpp"
#include "tally/io/crc64.hpp"
#include "tally/io/file_bytes.hpp"

namespace tally {
namespace {

using namespace std::string_view_literals;

constexpr const char* op = "TrainingState::load";
constexpr std::string_view magic = "tally\r\n\0"sv;  // "\r\n" reveals a copy that was made in text mode
constexpr std::uint32_t version = 1;
constexpr std::uint64_t head_size = 24, checksum_size = 8;

enum class Kind : std::uint8_t { integer = 1, number = 2, text = 3, floats = 4, doubles = 5 };

class StateWriter {
public:
    template <class T> void number(T value) {
        static_assert(std::is_arithmetic_v<T>);
        file_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void kind(Kind kind) { number(static_cast<std::uint8_t>(kind)); }
    void text(std::string_view text) { file_ += text; }

    void entry(std::int64_t value) {
        kind(Kind::integer);
        number(value);
    }
    void entry(double value) {
        kind(Kind::number);
        number(value);
    }
    void entry(const std::string& value) {
        kind(Kind::text);
        number(std::uint64_t{value.size()});
        text(value);
    }
    template <class S> void entry(const Array<S>& value) {
        const Array<S> here = value.to(Device::cpu);
        const std::span<const S> numbers = here.span();
        kind(std::is_same_v<S, float> ? Kind::floats : Kind::doubles);
        number(static_cast<std::uint8_t>(here.shape().rank()));
        for (const std::int32_t extent : here.shape()) number(extent);
        file_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    }

    std::string finish() && {
        const std::uint64_t length = file_.size() + checksum_size;
        std::memcpy(file_.data() + head_size - sizeof length, &length, sizeof length);
        number(crc64(as_bytes(file_)));
        return std::move(file_);
    }

private:
    std::string file_;
};

template <class S> Array<S> read_array(ByteReader& reader) {
    const std::uint64_t shape_at = reader.at();
    std::vector<std::int64_t> extents(reader.number<std::uint8_t>("the number of axes"));
    for (std::int64_t& extent : extents) extent = reader.number<std::int32_t>("an extent");
    const Shape shape = reader.shape(extents, shape_at);
    return array_of<S>(shape, reader.take(shape.size() * sizeof(S), "an array"));
}

TrainingState::Entry read_entry(ByteReader& reader) {
    const std::uint64_t kind_at = reader.at();
    const auto kind = reader.number<std::uint8_t>("the kind of an entry");
    switch (static_cast<Kind>(kind)) {
        case Kind::integer:
            return reader.number<std::int64_t>("an integer");
        case Kind::number:
            return reader.number<double>("a number");
        case Kind::text:
            return reader.text(reader.number<std::uint64_t>("the length of a text"), "a text");
        case Kind::floats:
            return read_array<float>(reader);
        case Kind::doubles:
            return read_array<double>(reader);
    }
    reader.throw_at(kind_at, "the kind of an entry is ", kind, "; it must be 1 to 5");
}

// Checks the header and the checksum of a file. The caller also checks each entry, because a file with a
// correct checksum may contain invalid entries.
void require_head(ByteReader& head, std::span<const std::byte> file) {
    if (head.text(std::min<std::uint64_t>(magic.size(), head.size()), "the magic word") != magic)
        head.throw_at(0, "not a training state: the magic word is missing");
    const auto found = head.number<std::uint32_t>("the version");
    if (found != version)
        head.throw_at(8, "version ", found, ", but this program reads version ", version,
                      found > version ? "; use a newer version of tally" : "");
    if (head.number<std::uint32_t>("the head") != 0) head.throw_at(12, "0 expected");
    const auto length = head.number<std::uint64_t>("the length");
    if (length > file.size())
        head.throw_at(file.size(), "truncated: the head gives a length of ", length,
                      " bytes, but the file has ", file.size());
    if (length < file.size())
        head.throw_at(length, file.size() - length, " bytes too many: the head gives a length of ", length);
    if (length < head_size + checksum_size) head.throw_at(length, "truncated: the checksum is missing");
    std::uint64_t expected;
    std::memcpy(&expected, file.last(checksum_size).data(), checksum_size);
    if (crc64(file.first(length - checksum_size)) != expected)
        head.throw_at(length - checksum_size,
                      "the checksum is wrong: the file was damaged after it was written");
}

}  // namespace

std::string detail::state_bytes(const TrainingState& state) {
    StateWriter writer;
    writer.text(magic);
    writer.number(version);
    writer.number(std::uint32_t{0});
    writer.number(std::uint64_t{0});  // the length, which finish() fills in
    for (const auto& [name, entry] : state.entries()) {
        writer.number(static_cast<std::uint32_t>(name.size()));
        writer.text(name);
        std::visit([&](const auto& value) { writer.entry(value); }, entry);
    }
    return std::move(writer).finish();
}

TrainingState detail::parse_state(std::span<const std::byte> file, const std::string& name) {
    ByteReader head(op, file, name);
    require_head(head, file);

    ByteReader reader(op, file.first(file.size() - checksum_size), name);
    reader.take(head_size, "the head");
    TrainingState state;
    while (reader.left() > 0) {
        const std::uint64_t entry_at = reader.at();
        const std::string key = reader.text(reader.number<std::uint32_t>("the length of a name"), "a name");
        if (!state.entries().empty() && key <= state.entries().rbegin()->first)
            reader.throw_at(entry_at, "'", key,
                            state.has(key)
                                ? "' a second time"
                                : "' is out of order: it follows '" + state.entries().rbegin()->first + "'");
        std::visit([&](auto&& value) { state.put(key, std::move(value)); }, read_entry(reader));
    }
    return state;
}

void TrainingState::save(const std::string& path) const {
    write_file_atomically(path, detail::state_bytes(*this));
}

TrainingState TrainingState::load(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(op, path);
    return within_memory(op, path, [&] { return detail::parse_state(bytes, path); });
}

}  // namespace tally
