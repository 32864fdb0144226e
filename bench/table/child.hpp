// The class Child starts a process that reads lines and answers each line with a line.
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
    explicit Child(const std::vector<std::string>& words);  // path and arguments of the program
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child();  // closes the input of the process, and waits for its end

    void tell(const std::string& line);
    std::optional<std::string> answer();  // empty if the process has ended
    clockid_t processor_time() const;

private:
    struct Closed {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, Closed> to_, from_;
    pid_t process_ = -1;
};

// A `Pinned` restricts this thread to the last `cores` cores that the process may use. Threads and processes
// that this thread starts use the same cores. A `Pinned` does nothing if the machine has too few cores.
class Pinned {
public:
    explicit Pinned(int cores);
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;
    ~Pinned();
};

}  // namespace tally::bench
