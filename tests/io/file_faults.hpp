// A FileFault makes the n-th file system call fail, either alone or with all later calls. A FileFault can
// also kill the process before the n-th call.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "io/killed.hpp"
#include "tally/base/syscall_hook.hpp"

namespace tally::test {

enum class Fault { none, once, from_then_on, kill };

// File system calls fail only while a FileFault exists. Calls are counted from 1, and calls() returns the
// names of all calls since the construction.
class FileFault {
public:
    FileFault(Fault kind, std::int64_t at, int reason = EIO) {
        state = {kind, at, reason, {}};
        before_file_call = [](const char* name) {
            state.names.emplace_back(name);
            const auto now = static_cast<std::int64_t>(state.names.size());
            const bool hit = state.kind == Fault::from_then_on ? now >= state.at : now == state.at;
            if (!hit || state.kind == Fault::none) return 0;
            if (state.kind == Fault::kill) die();
            return state.reason;
        };
    }
    FileFault(const FileFault&) = delete;
    FileFault& operator=(const FileFault&) = delete;
    ~FileFault() { before_file_call = nullptr; }

    static const std::vector<std::string>& calls() { return state.names; }
    static bool reached() { return static_cast<std::int64_t>(state.names.size()) >= state.at; }

private:
    struct State {
        Fault kind;
        std::int64_t at;
        int reason;
        std::vector<std::string> names;
    };
    static inline State state{};
};

}  // namespace tally::test
