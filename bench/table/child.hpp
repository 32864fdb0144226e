// A process that is told what to do and answers, a line each.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tally::bench {

class Child {
public:
    explicit Child(const std::vector<std::string>& words);  // a program's path and its arguments
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();  // closes what the process reads, and waits until it has ended

    void tell(const std::string& line);
    std::optional<std::string> answer();  // none where it has ended
    clockid_t processor_time() const;

private:
    struct Closed {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Closed> to_, from_;
    pid_t process_ = -1;
};

// Keeps this thread, and the threads and processes that it starts meanwhile, on so many cores, always the same ones.
// Does nothing where there are not so many.
class Pinned {
public:
    explicit Pinned(int cores);
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    ~Pinned();
};

}  // namespace tally::bench
