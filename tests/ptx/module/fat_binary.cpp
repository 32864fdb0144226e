// Reads NVIDIA's container of device code: a header, and one entry for each architecture.
#include "fat_binary.hpp"

#include <zstd.h>

#include <cstdint>
#include <cstring>

#include "program.hpp"

namespace tally::ptx {

namespace {

struct Header {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;  // of all entries
};

struct Entry {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;             // of the content, padded
    std::uint32_t compressed_bytes;  // 0 if the content is not compressed
};

template <class T> T read(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

constexpr std::uint32_t magic = 0xBA55ED50;
constexpr std::uint16_t ptx_kind = 1;

std::string decompressed(const char* content, std::size_t bytes) {
    const unsigned long long size = ZSTD_getFrameContentSize(content, bytes);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
        throw Unreadable(
            "[ptx] the PTX in the object files is compressed by an unknown method; compile with nvcc's "
            "--no-compress");
    std::string text(size, '\0');
    if (ZSTD_decompress(text.data(), text.size(), content, bytes) != size)
        throw Unreadable("[ptx] the compressed PTX in the object files is damaged; compile them again");
    return text;
}

}  // namespace

std::string ptx_of(const void* fat_binary) {
    const char* const begin = static_cast<const char*>(fat_binary);
    const auto header = read<Header>(begin);
    if (header.magic != magic)
        throw Unreadable("[ptx] the device code in the object files is not a fat binary");
    const char* const end = begin + header.header_bytes + header.bytes;
    for (const char* at = begin + header.header_bytes; at < end;) {
        const auto entry = read<Entry>(at);
        if (entry.header_bytes + entry.bytes == 0)
            throw Unreadable("[ptx] the device code in the object files is damaged");
        const char* const content = at + entry.header_bytes;
        at = content + entry.bytes;
        if (entry.kind != ptx_kind) continue;
        std::string text = entry.compressed_bytes != 0 ? decompressed(content, entry.compressed_bytes)
                                                       : std::string(content, entry.bytes);
        text.resize(text.find_last_not_of('\0') + 1);
        return text;
    }
    return "";
}

}  // namespace tally::ptx
