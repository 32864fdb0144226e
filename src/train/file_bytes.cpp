// Reading a whole regular file.
#include "train/file_bytes.hpp"

#include <bit>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tally {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in memory");

std::vector<std::byte> read_file(const char* op, const std::string& path) {
    const auto refuse = [&](const std::string& why) {
        throw Error("[" + std::string(op) + "] cannot read '" + path + "': " + why);
    };
    std::error_code failed;
    const bool regular = std::filesystem::is_regular_file(std::filesystem::status(path, failed));
    if (failed) refuse(failed.message());
    if (!regular) refuse("not a regular file");
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) refuse(std::generic_category().message(errno));
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file) refuse("it ended early, or could not be read to its end");
    return bytes;
}

}  // namespace tally
