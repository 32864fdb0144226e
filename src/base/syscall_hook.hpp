// file_call() makes a system call on files. Tests can make each of these calls fail or end the process.
#pragma once

#include <cerrno>

namespace tally {

// Tests set this function, which returns 0 or the errno with which the call of this name must fail.
inline int (*before_file_call)(const char* name) = nullptr;

template <class Call> auto file_call(const char* name, Call call) -> decltype(call()) {
    const int reason = before_file_call ? before_file_call(name) : 0;
    if (reason == 0) return call();
    errno = reason;
    return -1;
}

}  // namespace tally
