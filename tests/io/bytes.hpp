// These helpers for tests of files convert strings to bytes, write headers of IDX files, and compress with
// gzip.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/file_testing.hpp"
#include "tally/base/error.hpp"

namespace tally::test {

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string idx_header(const std::vector<std::uint32_t>& extents, char type = 8) {
    std::string file{'\0', '\0', type, static_cast<char>(extents.size())};
    for (const std::uint32_t extent : extents)
        for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(extent >> shift & 255);
    return file;
}

inline std::string gzipped(const std::string& bytes) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        throw Error("zlib cannot pack");
    std::string packed(deflateBound(&stream, bytes.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw Error("zlib did not end");
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

}  // namespace tally::test
