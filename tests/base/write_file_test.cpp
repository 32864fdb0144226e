// Tests that write_file_atomically() replaces a file completely or not at all, also if the disk is full.
#include "tally/base/write_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "folder.hpp"
#include "io/file_testing.hpp"
#include "tally/base/error.hpp"

using namespace tally;
using tally::test::Folder;
using tally::test::read_bytes;
namespace fs = std::filesystem;

namespace {

// Simulates a full disk, by limiting the size of all files that this process writes.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        rlimit now = before_;
        now.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int);
};

}  // namespace

TEST_CASE("write_file_atomically: writes a new file, replaces an old one and keeps its permissions") {
    const Folder folder;
    const std::string path = folder / "picture.svg", text(100'000, 'x');
    write_file_atomically(path, text);
    CHECK(read_bytes(path) == text);
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    write_file_atomically(path, std::string("short\0text", 10));
    CHECK(read_bytes(path) == std::string("short\0text", 10));
    CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
    write_file_atomically(path, "");
    CHECK(read_bytes(path).empty());
    CHECK(folder.files() == 1);
}

TEST_CASE("write_file_atomically: throws Error when a folder is missing, or file and folder are swapped") {
    const Folder folder;
    const std::string missing = folder / "no/such/picture.svg";
    CHECK_THROWS_WITH(write_file_atomically(missing, "x"),
                      "[write_file] cannot write '" + missing + "': No such file or directory");
    fs::create_directory(folder / "taken");
    CHECK_THROWS_WITH(write_file_atomically(folder / "taken", "x"), test::contains("Is a directory"));
    write_file_atomically(folder / "file", "x");
    CHECK_THROWS_WITH(write_file_atomically(folder / "file/picture.svg", "x"),
                      test::contains("Not a directory"));
    CHECK_THROWS_AS(write_file_atomically("", "x"), Error);
    CHECK(folder.files() == 2);
}

TEST_CASE("write_file_atomically: the old file stays and no temporary is left when the disk is full") {
    const Folder folder;
    const std::string path = folder / "picture.svg";
    const std::string larger(50'000, 'y');
    {
        const FileSizeLimit limit(10'000);
        CHECK_THROWS_WITH(write_file_atomically(path, larger), test::contains("File too large"));
    }
    CHECK(folder.files() == 0);
    write_file_atomically(path, "old");
    {
        const FileSizeLimit limit(10'000);
        CHECK_THROWS_AS(write_file_atomically(path, larger), Error);
    }
    CHECK(read_bytes(path) == "old");
    CHECK(folder.files() == 1);
}

TEST_CASE("write_file_atomically: writes to a pipe and does not replace it") {
    const Folder folder;
    const std::string pipe = folder / "pipe";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    REQUIRE(reader >= 0);
    write_file_atomically(pipe, "text");
    std::string received(16, ' ');
    const ssize_t length = ::read(reader, received.data(), received.size());
    ::close(reader);
    REQUIRE(length == 4);
    CHECK(received.substr(0, 4) == "text");
    CHECK(fs::is_fifo(pipe));
    CHECK(folder.files() == 1);
}

// The test uses a copy of /dev/full, because a faulty function called by root could replace /dev/full.
TEST_CASE("write_file_atomically: throws Error with the path when a device is full", "[alone]") {
    const Folder folder;
    std::string full = "/dev/full";
    if (!fs::is_character_file(full)) TALLY_SKIP("this system has no /dev/full");
    if (::geteuid() == 0) {
        struct stat original {};
        REQUIRE(::stat(full.c_str(), &original) == 0);
        full = folder / "full";
        if (::mknod(full.c_str(), S_IFCHR | 0600, original.st_rdev) != 0)
            TALLY_SKIP("no device may be made here");
        const int probe = ::open(full.c_str(), O_WRONLY);
        if (probe < 0) TALLY_SKIP("devices do not work in the temporary folder");
        ::close(probe);
    }
    CHECK_THROWS_WITH(write_file_atomically(full, "x"),
                      "[write_file] cannot write '" + full + "': No space left on device");
    CHECK(fs::is_character_file(full));
}

TEST_CASE("write_file_atomically: a link stays, and its target is replaced") {
    const Folder folder;
    write_file_atomically(folder / "real", "old");
    fs::create_symlink(folder / "real", folder / "link");
    write_file_atomically(folder / "link", "new");
    CHECK(fs::is_symlink(folder / "link"));
    CHECK(read_bytes(folder / "real") == "new");
    CHECK(folder.files() == 2);
}

TEST_CASE("write_file_atomically: a dangling link stays, and its target is created") {
    const Folder folder;
    fs::create_directory(folder / "there");
    fs::create_symlink("there/real", folder / "second");  // the path is relative to the folder of the link
    fs::create_symlink(folder / "second", folder / "first");
    write_file_atomically(folder / "first", "new");
    CHECK(fs::is_symlink(folder / "first"));
    CHECK(fs::is_symlink(folder / "second"));
    CHECK(read_bytes(folder / "there/real") == "new");
    CHECK(folder.files() == 3);
}

TEST_CASE("write_file_atomically: a loop of links throws Error and nothing is replaced") {
    const Folder folder;
    fs::create_symlink(folder / "b", folder / "a");
    fs::create_symlink(folder / "a", folder / "b");
    CHECK_THROWS_WITH(write_file_atomically(folder / "a", "x"),
                      "[write_file] cannot write '" + folder / "a" + "': Too many levels of symbolic links");
    CHECK_THROWS_WITH(file_exists(folder / "a"), test::contains("Too many levels of symbolic links"));
    CHECK(fs::is_symlink(folder / "a"));
    CHECK(folder.files() == 2);
}

TEST_CASE("require_writable: throws Error when a file cannot be written, and writes nothing") {
    const Folder folder;
    const std::string path = folder / "file";
    CHECK_FALSE(file_exists(path));
    require_writable(path);
    CHECK(folder.files() == 0);
    write_file_atomically(path, "old");
    CHECK(file_exists(path));
    require_writable(path);
    CHECK(read_bytes(path) == "old");
    CHECK(folder.files() == 1);
    CHECK_THROWS_WITH(require_writable(folder / "no/such"), test::contains("No such file or directory"));
    CHECK_THROWS_WITH(require_writable(folder / "file/in/it"), test::contains("Not a directory"));
    CHECK_THROWS_WITH(require_writable(folder / "."), test::contains("Is a directory"));
}

TEST_CASE("write_file_atomically: throws Error when a folder is not writable", "[alone]") {
    if (::geteuid() == 0) TALLY_SKIP("root may write everywhere");
    const Folder folder;
    fs::create_directory(folder / "locked");
    fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
    CHECK_THROWS_WITH(write_file_atomically(folder / "locked/picture.svg", "x"),
                      test::contains("Permission denied"));
    fs::permissions(folder / "locked", fs::perms::owner_all);
}
