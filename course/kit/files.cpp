// Writes files completely or throws an error.
#include "course/kit/files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tally/base/error.hpp"
#include "tally/base/write_file.hpp"

namespace tally::lesson {

void write_to(int descriptor, std::string_view content) {
    while (!content.empty()) {
        const ssize_t written = ::write(descriptor, content.data(), content.size());
        if (written >= 0) {
            content.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EPIPE && descriptor == STDOUT_FILENO) {
            throw OutputClosed{};
        } else if (errno != EINTR) {
            const char* to = descriptor == STDOUT_FILENO ? "standard output" : "the runner";
            throw WriteError(
                fmt::format("cannot write to {}: {}", to, std::generic_category().message(errno)));
        }
    }
}

void make_folder(const std::string& path) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) throw WriteError(fmt::format("cannot make the folder {}: {}", path, failed.message()));
}

void write_whole(const std::string& path, std::string_view content) {
    try {
        write_file_atomically(path, content);
    } catch (const Error& error) {
        throw WriteError(error.what());
    }
}

}  // namespace tally::lesson
