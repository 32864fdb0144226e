// Tests that the class Child starts a process, and closes all file descriptors if the process cannot start.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "bench/table/child.hpp"
#include "catch.hpp"
#include "tally/base/error.hpp"

namespace {

std::ptrdiff_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
}

// While this object exists, the process can open at most `more` additional file descriptors.
class Descriptors {
public:
    explicit Descriptors(std::size_t more) {
        std::vector<int> taken(more + 1);
        for (int& descriptor : taken) descriptor = ::dup(STDIN_FILENO);  // takes the lowest free descriptors
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit now = before_;
        now.rlim_cur = static_cast<rlim_t>(taken.back());
        for (const int descriptor : taken) ::close(descriptor);
        ::setrlimit(RLIMIT_NOFILE, &now);
    }
    ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

private:
    rlimit before_{};
};

}  // namespace

TEST_CASE("Child: answers line by line, and closes its pipes at the end") {
    const std::ptrdiff_t before = open_descriptors();
    {
        tally::bench::Child cat({"/bin/cat"});
        cat.tell("one");
        CHECK(cat.answer() == "one");
        cat.tell("two");
        CHECK(cat.answer() == "two");
    }
    {
        tally::bench::Child missing({"/nowhere/no program"});
        CHECK(!missing.answer());
    }
    CHECK(open_descriptors() == before);
}

TEST_CASE("Child: closes the first pipe when the second cannot be opened") {
    const std::ptrdiff_t before = open_descriptors();
    for (std::size_t more = 0; more < 4; ++more) {
        const Descriptors few(more);
        CHECK_THROWS_AS(tally::bench::Child({"/bin/cat"}), tally::Error);
    }
    CHECK(open_descriptors() == before);
}
