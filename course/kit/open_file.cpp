// Creates links to files, and opens files with xdg-open.
#include "course/kit/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace tally::lesson {

namespace {
bool have_desktop() {
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
        const char* value = std::getenv(name);
        if (value != nullptr && *value != '\0') return true;
    }
    return false;
}

// Creates a session and descriptors for the viewer, because the viewer may outlive the terminal.
[[noreturn]] void become_opener(const char* path) {
    ::setsid();
    ::signal(SIGPIPE, SIG_DFL);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, descriptor);
#ifdef __linux__
    ::close_range(STDERR_FILENO + 1, ~0U, 0);  // else readers of open pipes wait until the viewer ends
#endif
    if (::fork() == 0) ::execlp("xdg-open", "xdg-open", path, nullptr);
    ::_exit(0);
}
}  // namespace

std::string percent_encoded(const std::string& text) {
    std::string encoded;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain =
            std::isalnum(byte) != 0 || std::string_view("/-._~").find(c) != std::string_view::npos;
        encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
    }
    return encoded;
}

std::string file_link(const std::string& path) {
    return "file://" + percent_encoded(std::filesystem::absolute(path).lexically_normal().string());
}

void open_file(const std::string& path) {
    if (!have_desktop()) return;
    const pid_t pid = ::fork();
    if (pid == 0) become_opener(path.c_str());
    while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

}  // namespace tally::lesson
