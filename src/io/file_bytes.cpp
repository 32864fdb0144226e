// read_file() reads a whole regular file into memory.
#include "tally/io/file_bytes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <system_error>

#include "tally/base/syscall_hook.hpp"

namespace tally {

static_assert(std::endian::native == std::endian::little, "numbers are copied from files without conversion");

namespace {

struct Descriptor {
    explicit Descriptor(int opened) : number(opened) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number >= 0) ::close(number);
    }
    int number;
};

std::uint64_t memory_of_this_machine() {
    return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
           static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::vector<std::byte> read_file(const char* op, const std::string& path) {
    const auto require_readable = [&](bool condition, const auto&... why) {
        detail::require(condition, op, "cannot read '", path, "': ", why...);
    };
    const auto require_success = [&](bool done) {
        if (!done) require_readable(false, std::generic_category().message(errno));
    };
    struct stat found {};  // stat() precedes open(), because opening a pipe would wait for a writer
    require_success(file_call("stat", [&] { return ::stat(path.c_str(), &found); }) == 0);
    require_readable(S_ISREG(found.st_mode), "not a regular file");
    const Descriptor file(file_call("open", [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
    require_success(file.number >= 0);
    require_success(file_call("fstat", [&] { return ::fstat(file.number, &found); }) == 0);
    const auto size = static_cast<std::uint64_t>(found.st_size);
    require_readable(size <= memory_of_this_machine(), "its ", size,
                     " bytes are more than this machine's memory");
    return within_memory(op, path, [&] {
        std::vector<std::byte> bytes(size);
        for (std::size_t at = 0; at < bytes.size();) {
            const ssize_t count =
                file_call("read", [&] { return ::read(file.number, bytes.data() + at, bytes.size() - at); });
            if (count < 0 && errno == EINTR) continue;
            require_success(count >= 0);
            require_readable(count > 0, "it ended after ", at, " bytes while it was read");
            at += static_cast<std::size_t>(count);
        }
        return bytes;
    });
}

}  // namespace tally
