// Temporary name, every write checked, fsync, rename.
#include "autograd/write_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "autograd/error.hpp"

namespace tally {

namespace {

[[noreturn]] void fail(const std::string& path, int reason) {
    throw Error("[write_file] cannot write '" + path + "': " + std::generic_category().message(reason));
}

// A descriptor, and with a name also the temporary file behind it, that never outlive an error.
class Output {
public:
    Output(int descriptor, std::string temporary)
        : descriptor_(descriptor), temporary_(std::move(temporary)) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output() {
        if (descriptor_ >= 0) ::close(descriptor_);
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }

    int write(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t written = ::write(descriptor_, text.data(), text.size());
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) return errno;
            text.remove_prefix(static_cast<std::size_t>(written));
        }
        return 0;
    }
    int sync() const { return ::fsync(descriptor_) == 0 ? 0 : errno; }
    int set_mode(mode_t mode) const { return ::fchmod(descriptor_, mode) == 0 ? 0 : errno; }
    int close() {
        const int result = ::close(descriptor_) == 0 ? 0 : errno;
        descriptor_ = -1;
        return result;
    }
    int rename_to(const std::string& target) {
        if (::rename(temporary_.c_str(), target.c_str()) != 0) return errno;
        temporary_.clear();
        return 0;
    }

private:
    int descriptor_;
    std::string temporary_;
};

void reached(WriteStage stage) {
    if (at_write_stage) at_write_stage(stage);
}

// A link stays a link: the file it points to is replaced.
std::string behind_links(const std::string& path) {
    std::error_code failed;
    if (!std::filesystem::is_symlink(path, failed)) return path;
    const auto target = std::filesystem::weakly_canonical(path, failed);
    return failed ? path : target.string();
}

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
    static std::atomic<unsigned> serial{0};
    const std::string target = behind_links(path);

    struct stat present {};
    const bool exists = ::stat(target.c_str(), &present) == 0;
    if (exists && S_ISDIR(present.st_mode)) fail(path, EISDIR);
    const bool in_place = exists && !S_ISREG(present.st_mode);  // renaming would replace the device itself

    std::string temporary;
    int descriptor = -1;
    if (in_place) {
        descriptor = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
        do {  // a killed process of the same number may have left its temporary
            temporary = target + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
            descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        } while (descriptor < 0 && errno == EEXIST);
    }
    if (descriptor < 0) fail(path, errno);

    Output output(descriptor, temporary);
    const auto require = [&](int reason) {
        if (reason != 0) fail(path, reason);
    };
    require(output.write(text.substr(0, text.size() / 2)));
    reached(WriteStage::writing);
    require(output.write(text.substr(text.size() / 2)));
    if (!in_place) {
        reached(WriteStage::before_sync);
        if (exists) require(output.set_mode(present.st_mode & 07777));
        require(output.sync());
    }
    require(output.close());
    if (!in_place) {
        reached(WriteStage::before_rename);
        require(output.rename_to(target));
        reached(WriteStage::after_rename);
    }
}

}  // namespace tally
