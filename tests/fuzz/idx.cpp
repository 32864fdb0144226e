// Fuzzes parse_idx() with plain and gzip data. The function must return all elements or throw an Error.
#include "tally/io/idx.hpp"

#include <cstdlib>
#include <span>
#include <string>

#include "reader.hpp"
#include "tally/base/error.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const tally::Idx idx = tally::detail::parse_idx(std::as_bytes(std::span(data, size)), "fuzz");
        if (idx.values.size() != idx.shape.size() || idx.shape.rank() < 1 || idx.shape.rank() > 3)
            std::abort();
    } catch (const tally::Error& error) {
        if (std::string(error.what()).rfind("[Idx::load] 'fuzz', ", 0) != 0) std::abort();
    }
    return 0;
}
