// Finds the kernels, functions and tables of a PTX text.
#include "program.hpp"

#include <algorithm>
#include <charconv>

#include "decode.hpp"

namespace tally::ptx {

namespace {

constexpr std::string_view space = " \t\r";

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

// Returns the name before a bracket: "name(" or "name[24] = ...".
std::string name_before(std::string_view text, std::string_view brackets) {
    const std::size_t end = text.find_first_of(brackets);
    text = text.substr(0, end);
    text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    return std::string(text.substr(text.find_last_of(" \t\n") + 1));
}

// Replaces comments by spaces.
std::string without_comments(std::string text) {
    for (std::size_t at = 0; (at = text.find('/', at)) + 1 < text.size() && at != text.npos;) {
        const bool is_line = text[at + 1] == '/';
        if (!is_line && text[at + 1] != '*') {
            ++at;
            continue;
        }
        const std::size_t end = is_line ? text.find('\n', at) : text.find("*/", at + 2);
        const std::size_t until = end == text.npos ? text.size() : end + (is_line ? 0 : 2);
        for (; at < until; ++at)
            if (text[at] != '\n') text[at] = ' ';
    }
    return text;
}

}  // namespace

Program::Program(std::string text, std::string name)
    : name_(std::move(name)), text_(without_comments(std::move(text))) {
    const std::string_view all = text_;
    std::size_t number = 0, header_line = 0, header_at = 0, code_line = 0, code_at = 0;
    std::ptrdiff_t depth = 0;  // of braces in the code
    enum { outside, in_header, in_code } place = outside;
    bool is_entry = false, has_version = false;
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t end = std::min(all.find('\n', at), all.size());
        std::string_view line = all.substr(at, end - at);
        ++number;
        line.remove_prefix(std::min(line.find_first_not_of(space), line.size()));
        line = line.substr(0, line.find_last_not_of(space) + 1);
        if (place == outside) {
            const bool entry = line.find(".entry") != line.npos;
            has_version = has_version || begins(line, ".version");
            if (entry || begins(line, ".func") || line.find(" .func") != line.npos) {
                place = in_header, is_entry = entry, header_line = number, header_at = at;
            } else {
                read_header(line, number);
            }
        } else if (place == in_header && line == ";") {
            place = outside;  // a declaration without a body
        } else if (place == in_header && line == "{") {
            place = in_code, code_line = number + 1, code_at = end + 1, depth = 1;
        } else if (place == in_code && (depth += std::count(line.begin(), line.end(), '{') -
                                                 std::count(line.begin(), line.end(), '}')) == 0) {
            const std::string_view header = all.substr(header_at, code_at - header_at);
            const std::string_view declared =
                header.substr(header.find(is_entry ? ".entry" : ".func") + (is_entry ? 6 : 5));
            const std::size_t name_at = !is_entry && declared.find_first_not_of(" \t\n") == declared.find('(')
                                            ? declared.find(')') + 1
                                            : 0;  // after the parameter that a function returns
            const std::string found = name_before(declared.substr(name_at), "({\n");
            (is_entry ? entries_ : functions_)[found] = {header, all.substr(code_at, at - code_at),
                                                         header_line, code_line};
            place = outside;
        }
        at = end + 1;
    }
    if (place != outside) fail(header_line, "the text ends inside this function; the file is truncated");
    if (!has_version) throw Unreadable("[ptx] " + name_ + " is not PTX: it has no line .version");
}

void Program::read_header(std::string_view line, std::size_t number) {
    const auto rest_after = [&](std::size_t word) {
        const std::size_t from = line.find_first_not_of(space, word);
        if (from == line.npos) fail(number, "'" + std::string(line) + "' is not complete");
        return line.substr(from);
    };
    if (begins(line, ".version")) {
        const std::string_view version = rest_after(8);
        if (version < "7" || version >= ":" || version.find('.') != 1)
            fail(number,
                 "PTX version " + std::string(version) + " is not supported; versions 7.0 to 9.9 are");
    } else if (begins(line, ".address_size")) {
        if (rest_after(13) != "64") fail(number, "only addresses of 64 bits are supported");
    } else if (begins(line, ".file")) {
        std::uint32_t index = 0;
        const std::string_view rest = rest_after(5);
        const char* const after = std::from_chars(rest.data(), rest.data() + rest.size(), index).ptr;
        std::string_view path(after, static_cast<std::size_t>(rest.data() + rest.size() - after));
        path = path.substr(0, path.rfind('"'));
        files_[index] = std::string(path.substr(path.find_last_of("/\"") + 1));
    } else if (begins(line, ".global") || begins(line, ".const") || begins(line, ".visible .global")) {
        read_table(line, number);
    }
}

void Program::read_table(std::string_view declaration, std::size_t line) {
    const std::size_t open = declaration.find('{'), close = declaration.rfind('}');
    if (open == declaration.npos || close == declaration.npos || declaration.find(".b8 ") == declaration.npos)
        fail(line, "a global variable that is not a table of bytes is not supported");
    Table table{name_before(declaration, "["), {}};
    for (std::size_t at = open + 1; at < close;) {
        const std::size_t digit = declaration.find_first_of("0123456789", at);
        if (digit >= close) break;
        unsigned byte = 0;
        const char* const after =
            std::from_chars(declaration.data() + digit, declaration.data() + close, byte).ptr;
        table.bytes.push_back(static_cast<std::byte>(byte));
        at = static_cast<std::size_t>(after - declaration.data());
    }
    tables_.push_back(std::move(table));
}

const Kernel& Program::kernel(const std::string& mangled) {
    std::unique_ptr<const Kernel>& made = decoded_[mangled];
    if (made) return *made;
    const auto found = entries_.find(mangled);
    if (found == entries_.end()) throw Unreadable("[ptx] " + name_ + " has no kernel " + mangled);
    made = std::make_unique<Kernel>(decode(*this, mangled, found->second));
    return *made;
}

const Program::Body* Program::function(const std::string& name) const {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : &found->second;
}

std::string Program::words(Source source) const {
    const auto file = files_.find(source.file);
    return file == files_.end() ? "" : file->second + ":" + std::to_string(source.line);
}

void Program::fail(std::size_t line, const std::string& why) const {
    throw Unreadable("[ptx] " + name_ + ", line " + std::to_string(line) + ": " + why);
}

}  // namespace tally::ptx
