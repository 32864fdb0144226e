// Here: names a place in the program for what is recorded there, so that reports can say where.
//
//     const Here here;                    // this file and line
//     const Here encoder("encoder");      // and, inside of it, a name
#pragma once

#include <string>
#include <typeinfo>
#include <utility>

namespace tally {

namespace detail {
// A place in a program.
struct SourceLine {
    const char* file = nullptr;
    int line = 0;
    // Where it is called; std::source_location, which clang 14 lacks.
    static constexpr SourceLine current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
};
// For a part of a library, whose own line would tell nothing: then that of the place around it is said.
inline constexpr SourceLine no_location;
}  // namespace detail

// For this thread, while one lives. Several nest.
class [[nodiscard]] ScopeName {
public:
    [[nodiscard]] explicit ScopeName(detail::SourceLine at = detail::SourceLine::current())
        : ScopeName("", at) {}
    [[nodiscard]] explicit ScopeName(std::string name, detail::SourceLine at = detail::SourceLine::current())
        : name_(std::move(name)), at_(at), outer_(std::exchange(innermost_, this)) {}
    ~ScopeName() { innermost_ = outer_; }
    ScopeName(const ScopeName&) = delete;
    ScopeName& operator=(const ScopeName&) = delete;

    static std::string place();  // "model.cpp:12 encoder > 3 ReLU"; empty where nothing is named

private:
    std::string name_;
    detail::SourceLine at_;
    const ScopeName* outer_;
    static inline constinit thread_local const ScopeName* innermost_ = nullptr;
};

namespace detail {
std::string layer_type_name(const std::type_info& type);  // "ReLU" of a tally::ReLU<float>
}  // namespace detail

}  // namespace tally
