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
inline constexpr SourceLine nowhere;

}  // namespace detail

// For this thread, while one lives. Several nest.
class [[nodiscard]] Here {
public:
    [[nodiscard]] explicit Here(detail::SourceLine at = detail::SourceLine::current()) : Here("", at) {}
    [[nodiscard]] explicit Here(std::string name, detail::SourceLine at = detail::SourceLine::current())
        : name_(std::move(name)), at_(at), outer_(std::exchange(innermost_, this)) {}
    ~Here() { innermost_ = outer_; }
    Here(const Here&) = delete;
    Here& operator=(const Here&) = delete;

    static std::string place();  // "model.cpp:12 encoder > 3 ReLU"; empty where nothing is named

private:
    std::string name_;
    detail::SourceLine at_;
    const Here* outer_;
    static inline constinit thread_local const Here* innermost_ = nullptr;
};

namespace detail {
std::string kind_of(const std::type_info& type);  // "ReLU" of a tally::ReLU<float>
}  // namespace detail

}  // namespace tally
