// The file system's calls behind reading and writing files, each of which a test can let fail or die in.
#pragma once

#include <cerrno>

namespace tally {

// For tests: asked before each call, by its name. What is not 0 is the errno that the call fails with.
inline int (*before_file_call)(const char* name) = nullptr;

template <class Call> auto file_call(const char* name, Call call) -> decltype(call()) {
    const int reason = before_file_call ? before_file_call(name) : 0;
    if (reason == 0) return call();
    errno = reason;
    return -1;
}

}  // namespace tally
