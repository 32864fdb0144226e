// Implements the classes `Child` and `Pinned`.
#include "bench/table/child.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tally/base/error.hpp"

namespace tally::bench {
namespace {

[[noreturn]] void fail(const char* what) {
    throw Error("[bench] cannot create a " + std::string(what) + ": " + std::strerror(errno));
}

// Owns one end of a pipe, and closes this end in the destructor.
class End {
public:
    End() = default;
    ~End() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    int get() const { return descriptor_; }
    void open(int descriptor) {
        descriptor_ = descriptor;
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    }
    std::FILE* file(const char* mode) {  // the FILE owns the descriptor from here on
        std::FILE* const opened = ::fdopen(descriptor_, mode);
        if (opened == nullptr) fail("pipe");
        descriptor_ = -1;
        return opened;
    }

private:
    int descriptor_ = -1;
};

struct Pipe {
    End read, write;
    Pipe() {
        int ends[2];
        if (::pipe(ends) != 0) fail("pipe");
        read.open(ends[0]), write.open(ends[1]);
    }
};

}  // namespace

Child::Child(const std::vector<std::string>& words) {
    std::signal(SIGPIPE, SIG_IGN);  // no signal if the process has ended, because answer() reports this end
    Pipe down, up;
    to_.reset(down.write.file("w"));
    from_.reset(up.read.file("r"));
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ < 0) fail("process");
    if (process_ == 0) {
        ::dup2(down.read.get(), STDIN_FILENO);
        ::dup2(up.write.get(), STDOUT_FILENO);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
}

Child::~Child() {
    to_.reset();
    from_.reset();
    ::waitpid(process_, nullptr, 0);
}

void Child::tell(const std::string& line) {
    std::fputs((line + "\n").c_str(), to_.get());
    std::fflush(to_.get());
}

std::optional<std::string> Child::answer() {
    std::string line;
    for (int c = std::fgetc(from_.get()); c != '\n'; c = std::fgetc(from_.get())) {
        if (c == EOF) return std::nullopt;
        line += static_cast<char>(c);
    }
    return line;
}

clockid_t Child::processor_time() const {
    clockid_t clock = CLOCK_MONOTONIC;
    if (::clock_getcpuclockid(process_, &clock) != 0) throw Error("[bench] a process has no clock");
    return clock;
}

namespace {

cpu_set_t allowed() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    ::sched_getaffinity(0, sizeof cores, &cores);
    return cores;
}
const cpu_set_t at_the_beginning = allowed();

}  // namespace

Pinned::Pinned(int cores) {
    cpu_set_t last;
    CPU_ZERO(&last);
    for (std::size_t core = CPU_SETSIZE; core-- > 0 && CPU_COUNT(&last) < cores;)
        if (CPU_ISSET(core, &at_the_beginning)) CPU_SET(core, &last);
    if (CPU_COUNT(&last) == cores) ::sched_setaffinity(0, sizeof last, &last);
}
Pinned::~Pinned() { ::sched_setaffinity(0, sizeof at_the_beginning, &at_the_beginning); }

}  // namespace tally::bench
