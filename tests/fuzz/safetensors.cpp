// Fuzzes parse_safetensors(). Parsing a file that the library has written must return the same data.
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
