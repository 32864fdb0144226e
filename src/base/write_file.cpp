// Writes a temporary file, syncs and renames the file, and syncs the folder. Every step is checked.
#include "tally/base/write_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstdio>
#include <system_error>

#include "tally/base/error.hpp"
#include "tally/base/syscall_hook.hpp"

namespace tally {

namespace {

std::string to_text(int reason) { return std::generic_category().message(reason); }

[[noreturn]] void fail(const std::string& path, int reason) {
    throw Error("[write_file] cannot write '" + path + "': " + to_text(reason));
}

// The destructor closes the descriptor, and deletes the temporary file unless rename_to() succeeded.
class Output {
public:
    Output(int descriptor, std::string temporary)
        : descriptor_(descriptor), temporary_(std::move(temporary)) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output() {
        if (descriptor_ >= 0) ::close(descriptor_);
        if (!temporary_.empty()) file_call("unlink", [&] { return ::unlink(temporary_.c_str()); });
    }

    int write(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t written =
                file_call("write", [&] { return ::write(descriptor_, text.data(), text.size()); });
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) return errno;
            text.remove_prefix(static_cast<std::size_t>(written));
        }
        return 0;
    }
    int sync() const {
        return file_call("fsync", [&] { return ::fsync(descriptor_); }) == 0 ? 0 : errno;
    }
    int set_mode(mode_t mode) const {
        return file_call("fchmod", [&] { return ::fchmod(descriptor_, mode); }) == 0 ? 0 : errno;
    }
    int close() {
        const int injected = file_call("close", [] { return 0; }) == 0 ? 0 : errno;
        const int failed = ::close(descriptor_) == 0 ? 0 : errno;
        descriptor_ = -1;
        return injected != 0 ? injected : failed;
    }
    int rename_to(const std::string& target) {
        if (file_call("rename", [&] { return ::rename(temporary_.c_str(), target.c_str()); }) != 0)
            return errno;
        temporary_.clear();
        return 0;
    }

private:
    int descriptor_;
    std::string temporary_;
};

std::string folder_of(const std::string& path) {  // ends in a slash
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// Resolves symbolic links, even if the target file does not exist.
std::string behind_links(const std::string& path) {
    std::string target = path;
    for (int links = 0; links < 40; ++links) {
        std::array<char, PATH_MAX> text{};
        const ssize_t length =
            file_call("readlink", [&] { return ::readlink(target.c_str(), text.data(), text.size()); });
        if (length < 0 && errno != EINVAL && errno != ENOENT) fail(path, errno);
        if (length < 0) return target;
        const std::string next(text.data(), static_cast<std::size_t>(length));
        target = next.starts_with('/') ? next : folder_of(target) + next;
    }
    fail(path, ELOOP);
}

struct Target {
    std::string path, name;  // without symbolic links, and as the caller passed it
    bool exists = false;
    bool in_place = false;  // for a file that is not regular: renaming would replace the device itself
    mode_t mode = 0;
};

Target inspect(const std::string& path) {
    Target target{.path = behind_links(path), .name = path};
    struct stat present {};
    target.exists = file_call("stat", [&] { return ::stat(target.path.c_str(), &present); }) == 0;
    if (!target.exists && errno != ENOENT) fail(path, errno);
    if (target.exists && S_ISDIR(present.st_mode)) fail(path, EISDIR);
    target.in_place = target.exists && !S_ISREG(present.st_mode);
    target.mode = present.st_mode & 07777;
    return target;
}

// The process id and a counter make the name of the temporary file unique. If a killed process has left a
// file with this name, the loop increments the counter.
Output temporary_for(const Target& target) {
    static std::atomic<unsigned> serial{0};
    for (;;) {
        std::string temporary =
            target.path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
        const int descriptor = file_call(
            "open", [&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
        if (descriptor >= 0) return Output(descriptor, std::move(temporary));
        if (errno != EEXIST) fail(target.name, errno);
    }
}

void sync_folder(const Target& target) {
    const auto fail_sync = [&] {
        throw Error("[write_file] '" + target.name + "' is written, but its folder could not be synced: " +
                    to_text(errno) + "; a power cut may restore the old file");
    };
    const int folder = file_call(
        "open", [&] { return ::open(folder_of(target.path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (folder < 0 && errno == EACCES) return;
    if (folder < 0) fail_sync();
    const Output output(folder, "");
    if (const int reason = output.sync(); reason != 0 && reason != EINVAL && reason != ENOTSUP) {
        errno = reason;
        fail_sync();
    }
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
    const Target target = inspect(path);
    const auto require = [&](int reason) {
        if (reason != 0) fail(path, reason);
    };
    if (target.in_place) {
        const int descriptor =
            file_call("open", [&] { return ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC); });
        if (descriptor < 0) fail(path, errno);
        Output output(descriptor, "");
        require(output.write(text));
        return require(output.close());
    }
    Output output = temporary_for(target);
    require(output.write(text));
    if (target.exists) require(output.set_mode(target.mode));
    require(output.sync());
    require(output.rename_to(target.path));
    sync_folder(target);
}

void require_writable(const std::string& path) {
    const Target target = inspect(path);
    if (!target.in_place)
        temporary_for(target);
    else if (file_call("access", [&] { return ::access(target.path.c_str(), W_OK); }) != 0)
        fail(path, errno);
}

bool file_exists(const std::string& path) {
    struct stat found {};
    if (file_call("stat", [&] { return ::stat(path.c_str(), &found); }) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR)
        throw Error("[file_exists] cannot access '" + path + "': " + to_text(errno));
    return false;
}

}  // namespace tally
