// Two pipes and a process; affinity by the last cores that this process may use.
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

void make_pipe(int (&ends)[2]) {
    if (::pipe(ends) != 0) throw Error("[bench] no pipe: " + std::string(std::strerror(errno)));
    for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
}

}  // namespace

Child::Child(const std::vector<std::string>& words) {
    std::signal(SIGPIPE, SIG_IGN);  // whoever tells a process that has ended is told so by its answer
    int down[2], up[2];
    make_pipe(down);
    make_pipe(up);  // the bench ends where one of these fails, and all descriptors with it
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ < 0) throw Error("[bench] no process: " + std::string(std::strerror(errno)));
    if (process_ == 0) {
        ::dup2(down[0], STDIN_FILENO);
        ::dup2(up[1], STDOUT_FILENO);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    ::close(down[0]);
    ::close(up[1]);
    to_ = ::fdopen(down[1], "w");
    from_ = ::fdopen(up[0], "r");
    if (to_ == nullptr || from_ == nullptr)
        throw Error("[bench] no pipe: " + std::string(std::strerror(errno)));
}

Child::~Child() {
    std::fclose(to_);
    std::fclose(from_);
    ::waitpid(process_, nullptr, 0);
}

void Child::tell(const std::string& line) {
    std::fputs((line + "\n").c_str(), to_);
    std::fflush(to_);
}

std::optional<std::string> Child::answer() {
    std::string line;
    for (int c = std::fgetc(from_); c != '\n'; c = std::fgetc(from_)) {
        if (c == EOF) return std::nullopt;
        line += static_cast<char>(c);
    }
    return line;
}

#ifdef __linux__
clockid_t Child::processor_time() const {
    clockid_t clock = CLOCK_MONOTONIC;
    if (::clock_getcpuclockid(process_, &clock) != 0) throw Error("[bench] a process without a clock");
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
#else
clockid_t Child::processor_time() const { return CLOCK_MONOTONIC; }
Pinned::Pinned(int) {}
Pinned::~Pinned() {}
#endif

}  // namespace tally::bench
