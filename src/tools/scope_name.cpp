// ScopeName::place() describes the current place in a program. layer_type_name() shortens type names.
#include "tally/tools/scope_name.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string_view>

namespace tally {

std::string ScopeName::place() {
    std::string names, line;
    for (const ScopeName* here = innermost_; here; here = here->outer_) {
        if (!here->name_.empty()) names = here->name_ + (names.empty() ? "" : " > ") + names;
        if (!line.empty() || here->at_.line == 0) continue;
        const std::string_view file = here->at_.file;
        line = std::string(file.substr(file.find_last_of('/') + 1)) + ":" + std::to_string(here->at_.line);
    }
    return line + (line.empty() || names.empty() ? "" : " ") + names;
}

std::string detail::layer_type_name(const std::type_info& type) {
    const std::unique_ptr<char, void (*)(void*)> whole(
        abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), std::free);
    std::string kind;
    int depth = 0;  // nesting of template arguments and of the arguments of an enclosing function
    for (const char c : std::string_view(whole ? whole.get() : type.name())) {
        if (c == '>' || c == ')') --depth;
        if (depth == 0 && c != '>' && c != ')') kind += c;
        if (c == '<' || c == '(') {
            if (depth++ == 0) kind.pop_back();
        }
        if (kind.ends_with("::")) kind.clear();
    }
    return kind;
}

}  // namespace tally
