// Fuzzes parse_safetensors(). If an accepted file is written and read again, the bytes must be the same.
#include "tally/io/safetensors.hpp"

#include <cstdlib>
#include <string>

#include "reader.hpp"
#include "tally/base/error.hpp"
#include "tally/io/file_bytes.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const std::string file(reinterpret_cast<const char*>(data), size);
        const std::string written =
            tally::detail::safetensors_bytes(tally::detail::parse_safetensors(tally::as_bytes(file), "fuzz"));
        const std::string again = tally::detail::safetensors_bytes(
            tally::detail::parse_safetensors(tally::as_bytes(written), "written"));
        if (again != written) std::abort();
    } catch (const tally::Error& error) {
        if (std::string(error.what()).find("'fuzz'") == std::string::npos) std::abort();
    }
    return 0;
}
