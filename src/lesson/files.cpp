// Writing that is whole or not at all.
#include "tally/lesson/files.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
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
            throw NobodyReads{};
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

bool open_in_viewer(const std::string& path) {
    if (std::getenv("DISPLAY") == nullptr && std::getenv("WAYLAND_DISPLAY") == nullptr) return false;
    // The shell looks for the program and leaves it behind; it is there for a moment only.
    const std::string words =
        "command -v xdg-open >/dev/null 2>&1 || exit 1; xdg-open \"$0\" </dev/null >/dev/null 2>&1 &";
    std::string name = path;
    std::array<char*, 5> arguments{const_cast<char*>("sh"), const_cast<char*>("-c"),
                                   const_cast<char*>(words.c_str()), name.data(), nullptr};
    pid_t shell = 0;
    int status = 0;
    if (::posix_spawn(&shell, "/bin/sh", nullptr, nullptr, arguments.data(), environ) != 0) return false;
    while (::waitpid(shell, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace tally::lesson
