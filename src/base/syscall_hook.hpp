// file_call() makes a system call on a file. Tests can make each system call fail or end the process.
#pragma once

#include <cerrno>

namespace tally {

// Set by tests. The function returns 0, or the errno with which the named system call must fail.
inline int (*before_file_call)(const char* name) = nullptr;

template <class Call> auto file_call(const char* name, Call call) -> decltype(call()) {
    const int reason = before_file_call ? before_file_call(name) : 0;
    if (reason == 0) return call();
    errno = reason;
    return -1;
}

}  // namespace tally
