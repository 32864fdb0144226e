// Fuzzes parse_state(). Also corrects the length and the checksum in the bytes, because a wrong checksum
// would hide other mistakes.
#include <cstdlib>
#include <cstring>
#include <string>

#include "reader.hpp"
#include "tally/base/error.hpp"
#include "tally/io/crc64.hpp"
#include "tally/io/file_bytes.hpp"
#include "tally/io/training_state.hpp"

namespace {

void read(const std::string& file) {
    try {
        const tally::TrainingState state = tally::detail::parse_state(tally::as_bytes(file), "fuzz");
        if (tally::detail::state_bytes(state) != file) std::abort();  // a state has only one encoding
    } catch (const tally::Error&) {
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string file(reinterpret_cast<const char*>(data), size);
    read(file);
    if (size < 32) return 0;
    const std::uint64_t length = size;
    std::memcpy(file.data() + 16, &length, sizeof length);
    const std::uint64_t checksum = tally::crc64(tally::as_bytes(file).first(size - sizeof checksum));
    std::memcpy(file.data() + size - sizeof checksum, &checksum, sizeof checksum);
    read(file);
    return 0;
}
