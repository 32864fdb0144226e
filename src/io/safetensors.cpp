// save_safetensors() and load_safetensors() write and read files, and check every byte that is read.
#include "tally/io/safetensors.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tally/base/utf8.hpp"
#include "tally/base/write_file.hpp"
#include "tally/io/crc64.hpp"
#include "tally/io/file_bytes.hpp"
#include "tally/io/json_header.hpp"

namespace tally {
namespace {

constexpr const char* load_op = "load_safetensors";
constexpr std::string_view metadata_key = "__metadata__";
constexpr std::uint64_t length_size = 8, max_header = 100'000'000;  // the limit of the format

// The metadata contains the checksum as 16 hexadecimal digits, which are zeros while the checksum is
// computed. A second entry announces the checksum, so that damage to the key of the checksum is detected.
const std::string checksum_key = "tally.crc64", announcing_key = "tally.checksum";
constexpr std::string_view no_digits = "0000000000000000";

std::string checksum_digits(std::string_view file, std::size_t at) {
    const std::uint64_t checksum = crc64(as_bytes(file.substr(at + no_digits.size())),
                                         crc64(as_bytes(no_digits), crc64(as_bytes(file.substr(0, at)))));
    std::string digits(no_digits);
    for (std::size_t i = 0; i < digits.size(); ++i)
        digits[i] = "0123456789abcdef"[(checksum >> (60 - 4 * i)) & 15];
    return digits;
}

template <class S> constexpr std::string_view dtype_name = std::is_same_v<S, float>    ? "F32"
                                                           : std::is_same_v<S, double> ? "F64"
                                                                                       : "I32";

// ---- writing ----

std::string quoted(const std::string& text) {
    if (!is_utf8(text))
        throw Error("save_safetensors", "a name or an entry of the metadata is not UTF-8; pass UTF-8 text");
    constexpr std::string_view meanings = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt",
                               digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const std::size_t which = meanings.find(c);
        if (which != std::string_view::npos)
            (out += '\\') += letters[which];
        else if (const auto byte = static_cast<unsigned char>(c); byte < 0x20)
            ((out += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
        else
            out += c;
    }
    return out + '"';
}

class TensorsWriter {
public:
    // Writes arrays of wider types first, so that every array is aligned.
    explicit TensorsWriter(const std::map<std::string, detail::AnyArray>& tensors) {
        append<double>(tensors);
        append<float>(tensors);
        append<std::int32_t>(tensors);
    }

    std::string finish(const std::map<std::string, std::string>& metadata) && {
        std::string header = "{";
        std::size_t checksum_at = 0;
        if (!metadata.empty()) {
            header += quoted(std::string(metadata_key)) + ":{";
            for (const auto& [key, value] : metadata) {
                header += quoted(key) + ":";
                if (key == checksum_key) checksum_at = length_size + header.size() + 1;
                header += quoted(key == checksum_key ? std::string(no_digits) : value) + ",";
            }
            header.back() = '}';
            header += ',';
        }
        header += entries_;
        if (header.back() == ',') header.pop_back();
        header += '}';
        header.resize((header.size() + 7) / 8 * 8, ' ');
        const std::uint64_t length = header.size();
        std::string file(reinterpret_cast<const char*>(&length), sizeof length);
        file += header;
        file += numbers_;
        if (checksum_at > 0) file.replace(checksum_at, no_digits.size(), checksum_digits(file, checksum_at));
        return file;
    }

private:
    template <class S> void append(const std::map<std::string, detail::AnyArray>& tensors) {
        for (const auto& [name, any] : tensors) {
            const auto* array = std::get_if<Array<S>>(&any);
            if (!array) continue;
            if (name == metadata_key)
                throw Error("save_safetensors", "the name '", name, "' is reserved; use another name");
            const Array<S> here = array->to(Device::cpu);
            const std::span<const S> numbers = here.span();
            entries_ += quoted(name) + ":{\"dtype\":\"" + std::string(dtype_name<S>) + "\",\"shape\":[";
            for (const std::int32_t extent : here.shape()) entries_ += std::to_string(extent) + ",";
            if (entries_.back() == ',') entries_.pop_back();
            entries_ += "],\"data_offsets\":[" + std::to_string(numbers_.size());
            numbers_.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
            entries_ += "," + std::to_string(numbers_.size()) + "]},";
        }
    }

    std::string entries_, numbers_;
};

// ---- reading ----

struct Entry {
    std::string name, type;
    Shape shape;
    std::uint64_t begin = 0, end = 0, at = 0;  // at: position of the entry in the header
};

std::size_t width(std::string_view type) {
    if (type == "F64" || type == "I64") return 8;
    return type == "F32" || type == "I32" ? 4 : 0;
}

class JsonHeader {
public:
    JsonHeader(const ByteReader& file, std::string_view text) : file_(file), json_(file, text, length_size) {}

    std::uint64_t checksum_at() const { return checksum_at_; }  // position of the first digit, or 0 if none

    // Returns the entries in the order of their data in the file.
    std::vector<Entry> read(std::map<std::string, std::string>& metadata) {
        std::map<std::string, Entry> entries;
        bool described = false;
        json_.object([&](const std::string& key, std::uint64_t at) {
            if (key == metadata_key ? std::exchange(described, true) : entries.count(key) > 0)
                file_.throw_at(at, "'", key, "' a second time");
            if (key == metadata_key)
                read_metadata(metadata);
            else
                entries.emplace(key, read_entry(key, at));
        });
        json_.end();

        std::vector<Entry> in_order;
        for (auto& [key, entry] : entries) in_order.push_back(std::move(entry));
        std::sort(in_order.begin(), in_order.end(), [](const Entry& a, const Entry& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        return in_order;
    }

private:
    void read_metadata(std::map<std::string, std::string>& metadata) {
        json_.object([&](const std::string& key, std::uint64_t at) {
            const std::string value = json_.string();
            if (key == checksum_key) {
                if (value.size() != no_digits.size()) file_.throw_at(at, "a checksum has 16 digits");
                checksum_at_ = json_.at() - 1 - value.size();
            }
            if (!metadata.emplace(key, value).second) file_.throw_at(at, "'", key, "' a second time");
        });
    }

    Entry read_entry(const std::string& name, std::uint64_t at) {
        Entry entry{.name = name, .type = {}, .shape = {}, .at = at};
        bool has_type = false, has_shape = false, has_place = false;
        const auto once = [&](bool& seen, const std::string& key, std::uint64_t key_at) {
            if (std::exchange(seen, true)) file_.throw_at(key_at, "'", key, "' a second time");
        };
        json_.object([&](const std::string& key, std::uint64_t key_at) {
            const std::uint64_t value_at = json_.at();
            if (key == "dtype") {
                once(has_type, key, key_at);
                entry.type = json_.string();
                if (width(entry.type) == 0)
                    file_.throw_at(value_at, "numbers of type '", entry.type,
                                   "'; save them as F32, F64, I32 or I64");
            } else if (key == "shape") {
                once(has_shape, key, key_at);
                entry.shape = file_.shape(json_.numbers(), value_at);
            } else if (key == "data_offsets") {
                once(has_place, key, key_at);
                const std::vector<std::int64_t> place = json_.numbers();
                if (place.size() != 2) file_.throw_at(value_at, "data_offsets are two numbers");
                entry.begin = static_cast<std::uint64_t>(place[0]);
                entry.end = static_cast<std::uint64_t>(place[1]);
            } else {
                file_.throw_at(key_at, "unknown key '", key, "'");
            }
        });
        if (!has_type || !has_shape || !has_place)
            file_.throw_at(at, "'", name, "' has no dtype, shape or data_offsets");
        return entry;
    }

    const ByteReader& file_;
    JsonReader json_;
    std::uint64_t checksum_at_ = 0;
};

void require_checksum(const ByteReader& reader, std::span<const std::byte> file, std::uint64_t at,
                      const std::map<std::string, std::string>& metadata) {
    if (at == 0) {
        if (metadata.count(announcing_key) > 0)
            reader.throw_at(
                length_size, "the metadata has '", announcing_key, "', but no '", checksum_key,
                "': the file was damaged, or another program has rewritten it without that entry");
        return;
    }
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    if (checksum_digits(text, at) != text.substr(at, no_digits.size()))
        reader.throw_at(
            at,
            "the checksum is wrong: the file was damaged after it was written, or another program "
            "has rewritten it and kept '",
            checksum_key, "' and '", announcing_key, "' of the metadata");
}

detail::AnyArray read_array(const ByteReader& file, const Entry& entry, std::span<const std::byte> numbers) {
    if (entry.type == "F32") return array_of<float>(entry.shape, numbers);
    if (entry.type == "F64") return array_of<double>(entry.shape, numbers);
    if (entry.type == "I32") return array_of<std::int32_t>(entry.shape, numbers);
    return narrowed(entry.shape, numbers, [&](std::int64_t value, std::size_t) {
        file.throw_at(entry.at, "'", entry.name, "' holds ", value, ", which does not fit into int32");
    });
}

}  // namespace

std::map<std::string, std::string> detail::checksum_metadata(std::map<std::string, std::string> metadata) {
    metadata[checksum_key] = no_digits;
    metadata[announcing_key] = checksum_key;
    return metadata;
}

std::string detail::safetensors_bytes(const detail::Safetensors& content) {
    return TensorsWriter(content.tensors).finish(content.metadata);
}

detail::Safetensors detail::parse_safetensors(std::span<const std::byte> file, const std::string& name) {
    ByteReader reader(load_op, file, name);
    const auto length = reader.number<std::uint64_t>("the length of the header");
    if (length > max_header)
        reader.throw_at(0, "a header of ", length, " bytes; the format allows ", max_header);
    const std::string text = reader.text(length, "the header");
    if (!text.starts_with('{')) reader.throw_at(length_size, "'{' expected");
    detail::Safetensors content;
    JsonHeader header(reader, text);
    const std::vector<Entry> entries = header.read(content.metadata);
    require_checksum(reader, file, header.checksum_at(), content.metadata);
    for (const Entry& entry : entries) {
        const std::uint64_t expected = reader.at() - length_size - length;
        const std::string quoted_name = "'" + entry.name + "'", of = quoted_name + ": its numbers ";
        if (entry.begin != expected)
            reader.throw_at(entry.at, of, "begin at ", entry.begin, ", but the previous numbers end at ",
                            expected);
        const std::uint64_t needed = entry.shape.size() * width(entry.type);
        if (entry.end < entry.begin || entry.end - entry.begin != needed)
            reader.throw_at(entry.at, of, "go from ", entry.begin, " to ", entry.end, ", but ", entry.shape,
                            " of ", entry.type, " is ", needed, " bytes");
        content.tensors.emplace(entry.name,
                                read_array(reader, entry, reader.take(needed, quoted_name.c_str())));
    }
    if (reader.left() > 0) reader.throw_here(reader.left(), " bytes too many after the last tensor");
    return content;
}

void detail::save_safetensors(const std::string& path, const std::map<std::string, detail::AnyArray>& tensors,
                              const std::map<std::string, std::string>& metadata) {
    write_file_atomically(path, TensorsWriter(tensors).finish(metadata));
}

detail::Safetensors detail::load_safetensors(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(load_op, path);
    return within_memory(load_op, path, [&] { return detail::parse_safetensors(bytes, path); });
}

}  // namespace tally
