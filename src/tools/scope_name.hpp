// A ScopeName names a place in the program, so that reports show where an operation was recorded.
//
//     const ScopeName here;                    // this file and line
//     const ScopeName encoder("encoder");      // also a name
#pragma once

#include <string>
#include <typeinfo>
#include <utility>

namespace tally {

namespace detail {
struct SourceLine {
    const char* file = nullptr;
    int line = 0;
    // Returns the place of the call. (clang 14 has no std::source_location.)
    static constexpr SourceLine current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
};
// Library code passes no_location to ScopeName, so that reports show the line of the program's own scope.
inline constexpr SourceLine no_location;
}  // namespace detail

// A `ScopeName` adds its name and line to reports of operations on its thread. Scopes can be nested.
class [[nodiscard]] ScopeName {
public:
    [[nodiscard]] explicit ScopeName(detail::SourceLine at = detail::SourceLine::current())
        : ScopeName("", at) {}
    [[nodiscard]] explicit ScopeName(std::string name, detail::SourceLine at = detail::SourceLine::current())
        : name_(std::move(name)), at_(at), outer_(std::exchange(innermost_, this)) {}
    ~ScopeName() { innermost_ = outer_; }
    ScopeName(const ScopeName&) = delete;
    ScopeName& operator=(const ScopeName&) = delete;

    static std::string place();  // "model.cpp:12 encoder > 3 ReLU"; empty outside of all scopes

private:
    std::string name_;
    detail::SourceLine at_;
    const ScopeName* outer_;
    static inline constinit thread_local const ScopeName* innermost_ = nullptr;
};

namespace detail {
std::string layer_type_name(const std::type_info& type);  // "ReLU" for tally::ReLU<float>
}  // namespace detail

}  // namespace tally
