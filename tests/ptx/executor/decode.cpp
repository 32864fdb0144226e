// Reads the statements of a kernel and of the functions that it calls.
#include "decode.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <utility>

namespace tally::ptx {

namespace {

constexpr std::string_view space = " \t\r\n";

std::string_view stripped(std::string_view text) {
    const std::size_t from = text.find_first_not_of(space);
    return from == text.npos ? "" : text.substr(from, text.find_last_not_of(space) + 1 - from);
}

// Splits at commas, but not inside of brackets.
std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t from = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : ',';
        if (c == '{' || c == '[' || c == '(') ++depth;
        if (c == '}' || c == ']' || c == ')') --depth;
        if (c != ',' || depth > 0) continue;
        if (const std::string_view part = stripped(text.substr(from, i - from)); !part.empty())
            parts.push_back(part);
        from = i + 1;
    }
    return parts;
}

struct Opcode {  // "ld.global.nc.v2.f64" is {"ld", {"global", "nc", "v2"}, "f64"}
    std::string name, type;
    std::vector<std::string> modifiers;

    explicit Opcode(std::string_view text) {
        std::vector<std::string> parts;
        for (std::size_t from = 0; from <= text.size();) {
            const std::size_t dot = std::min(text.find('.', from), text.size());
            parts.emplace_back(text.substr(from, dot - from));
            from = dot + 1;
        }
        name = parts.front();
        parts.erase(parts.begin());
        if (!parts.empty() && name != "bar" && name != "barrier" && name != "bra" && name != "call" &&
            name != "ret") {
            type = parts.back();
            parts.pop_back();
        }
        modifiers = std::move(parts);
    }
    bool has(std::string_view word) const {
        return std::find(modifiers.begin(), modifiers.end(), word) != modifiers.end();
    }
};

// Returns the number of operands of an arithmetic operation, or 0 for an unknown name. The table is never destroyed, because kernels
// may be decoded while the program ends.
std::size_t operands_of(const std::string& name) {
    using Counts = std::unordered_map<std::string, std::size_t>;
    static const Counts& counts = *new Counts{
        {"mov", 2},  {"cvta", 2}, {"cvt", 2},  {"not", 2},      {"neg", 2},  {"abs", 2}, {"sqrt", 2},
        {"rcp", 2},  {"clz", 2},  {"add", 3},  {"sub", 3},      {"mul", 3},  {"div", 3}, {"rem", 3},
        {"min", 3},  {"max", 3},  {"and", 3},  {"or", 3},       {"xor", 3},  {"shl", 3}, {"shr", 3},
        {"setp", 3}, {"addc", 3}, {"subc", 3}, {"copysign", 3}, {"selp", 4}, {"mad", 4}, {"shf", 4},
        {"madc", 4}, {"fma", 4},  {"bfi", 5}};
    const auto found = counts.find(name);
    return found == counts.end() ? 0 : found->second;
}

class Decoder {
public:
    Decoder(const Program& program, const std::string& name) : program_(program) {
        kernel_.name = name;
        fresh(0);  // slot 0 means "no guard"
        kernel_.thread = fresh(0);
        kernel_.lane = fresh(0);
        kernel_.block = fresh(0);
        kernel_.threads = fresh(0);
        kernel_.blocks = fresh(0);
        for (const Program::Table& table : program.tables())
            symbols_[table.name] = reinterpret_cast<std::uint64_t>(table.bytes.data());
    }

    Kernel decode(const Program::Body& body) {
        read_kernel_header(body);
        read_body(body, "");
        add({.kind = Kind::exit}, "the end of the kernel", body.code_line);
        for (std::size_t next = 0; next < called_.size();
             ++next) {  // reading a function may call another one
            const std::string name = called_[next];
            const Program::Body& function = *program_.function(name);
            entry_[name] = static_cast<std::uint32_t>(kernel_.code.size());
            read_body(function, name);
        }
        for (const auto& [at, label, line] : jumps_) {
            const auto found = labels_.find(label);
            if (found == labels_.end()) program_.fail(line, "unknown label '" + label + "'");
            kernel_.code[at].target = found->second;
        }
        for (const auto& [at, name] : calls_) kernel_.code[at].target = entry_[name];
        return std::move(kernel_);
    }

private:
    struct Jump {
        std::size_t at;
        std::string label;
        std::size_t line;
    };

    std::uint32_t fresh(std::uint64_t value) {
        kernel_.slots.push_back(value);
        return static_cast<std::uint32_t>(kernel_.slots.size() - 1);
    }
    std::uint32_t constant(std::uint64_t value) {
        const auto [found, is_new] = constants_.try_emplace(value, 0);
        if (is_new) found->second = fresh(value);
        return found->second;
    }
    static std::size_t take(std::size_t& total, std::size_t bytes, std::size_t alignment) {
        total = (total + alignment - 1) / alignment * alignment;
        return std::exchange(total, total + bytes);
    }

    // Reads ".param .align 8 .b8 name[24]" and the like. Returns name, bytes and alignment.
    struct Variable {
        std::string name;
        std::size_t bytes = 0, alignment = 1;
    };
    Variable variable(std::string_view text, std::size_t line) const {
        Variable found;
        std::size_t unit = 0;
        bool is_aligned = false;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t from = text.find_first_not_of(space, at);
            if (from == text.npos) break;
            at = std::min(text.find_first_of(space, from), text.size());
            const std::string word(text.substr(from, at - from));
            if (is_aligned) {
                found.alignment = std::strtoul(word.c_str(), nullptr, 10);
                is_aligned = false;
            } else if (word == ".align") {
                is_aligned = true;
            } else if (word[0] != '.') {
                found.name = word;
            } else if (word.size() > 2 && std::isdigit(static_cast<unsigned char>(word[2]))) {
                unit = std::strtoul(word.c_str() + 2, nullptr, 10) / 8;
            }
        }
        std::size_t count = 1;
        if (const std::size_t bracket = found.name.find('['); bracket != found.name.npos) {
            count = std::strtoul(found.name.c_str() + bracket + 1, nullptr, 10);
            found.name.erase(bracket);
        }
        if (unit == 0 || found.name.empty())
            program_.fail(line, "unknown declaration '" + std::string(text) + "'");
        found.bytes = unit * count;
        found.alignment = std::max(found.alignment, unit);
        return found;
    }

    void read_kernel_header(const Program::Body& body) {
        const std::size_t open = body.header.find('('), close = body.header.find(')');
        if (open != body.header.npos)
            for (const std::string_view text : split(body.header.substr(open + 1, close - open - 1))) {
                const Variable parameter = variable(text, body.header_line);
                const std::size_t offset =
                    take(kernel_.parameter_bytes, parameter.bytes, parameter.alignment);
                kernel_.parameters.push_back({offset, parameter.bytes});
                symbols_[parameter.name] = parameter_window + offset;
            }
        if (const std::size_t most = body.header.find(".maxntid"); most != body.header.npos)
            kernel_.most_threads =
                static_cast<unsigned>(std::strtoul(body.header.data() + most + 8, nullptr, 10));
    }

    // Returns the result and the parameters of a function.
    std::vector<Variable> variables_of(const Program::Body& function) const {
        std::vector<Variable> found;
        const std::string_view header = function.header.substr(function.header.find(".func") + 5);
        for (std::size_t at = 0; (at = header.find(".param", at)) != header.npos; ++at)
            found.push_back(variable(stripped(header.substr(at, header.find_first_of(",)", at) - at)),
                                     function.header_line));
        return found;
    }

    // Reads the statements of a function: labels, declarations and instructions.
    void read_body(const Program::Body& body, const std::string& function) {
        function_ = function;
        if (!function.empty()) {
            const auto variables = variables_of(body);
            for (std::size_t k = 0; k < variables.size(); ++k)
                symbols_[variables[k].name] = frames_[function][k];
        }
        std::size_t line = body.code_line;
        std::string_view rest = body.code;
        const auto skip = [&](std::size_t count) {
            line += static_cast<std::size_t>(
                std::count(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count), '\n'));
            rest.remove_prefix(count);
        };
        while (true) {
            skip(std::min(rest.find_first_not_of(space), rest.size()));
            if (rest.empty()) break;
            if (rest[0] == '{') {
                scopes_.emplace_back();
                skip(1);
            } else if (rest[0] == '}') {
                if (scopes_.empty()) program_.fail(line, "this '}' has no '{'");
                scopes_.pop_back();
                skip(1);
            } else if (rest.starts_with("//") || rest.starts_with(".loc ") || rest.starts_with(".loc\t") ||
                       rest.starts_with(".pragma")) {
                const std::string_view text = rest.substr(0, rest.find('\n'));
                if (rest[1] == 'l') read_source(text.substr(4));
                skip(text.size());
            } else {
                std::size_t end = rest.find_first_of(";:");
                while (rest.substr(std::min(end, rest.size()), 2) == "::")
                    end = rest.find_first_of(";:", end + 2);
                if (end == rest.npos) program_.fail(line, "a statement does not end");
                const std::string_view text = stripped(rest.substr(0, end));
                if (rest[end] == ':')
                    labels_[function_ + std::string(text)] = static_cast<std::uint32_t>(kernel_.code.size());
                else if (text.starts_with('.'))
                    read_declaration(text, line);
                else
                    read_instruction(text, line);
                skip(end + 1);
            }
        }
    }

    void read_source(std::string_view text) {  // .loc FILE LINE COLUMN ...
        char* end = nullptr;
        const std::string words(text);
        source_.file = static_cast<std::uint32_t>(std::strtoul(words.c_str(), &end, 10));
        source_.line = static_cast<std::uint32_t>(std::strtoul(end, nullptr, 10));
    }

    void read_declaration(std::string_view text, std::size_t line) {
        if (text.starts_with(".reg")) {
            const std::size_t type = text.find('.', 1), names = text.find_first_of(" \t", type);
            for (const std::string_view name : split(text.substr(std::min(names, text.size()))))
                declare(std::string(name));
        } else if (text.starts_with(".shared")) {
            const Variable found = variable(text, line);
            symbols_[found.name] = shared_window + take(kernel_.shared_bytes, found.bytes, found.alignment);
        } else if (text.starts_with(".local") || text.starts_with(".param")) {
            const Variable found = variable(text, line);
            symbols_[found.name] = local_window + take(kernel_.local_bytes, found.bytes, found.alignment);
        } else {
            program_.fail(line, "unknown declaration '" + std::string(text) + "'");
        }
    }

    // Declares "%r<4>" or "%r3". A register of an inner scope hides that of an outer one.
    void declare(const std::string& name) {
        const auto add_one = [&](const std::string& one) {
            if (scopes_.empty())
                registers_[function_ + one] = fresh(0);
            else
                scopes_.back()[one] = fresh(0);
        };
        const std::size_t angle = name.find('<');
        if (angle == name.npos) return add_one(name);
        const std::size_t count = std::strtoul(name.c_str() + angle + 1, nullptr, 10);
        for (std::size_t k = 0; k < count; ++k) add_one(name.substr(0, angle) + std::to_string(k));
    }

    std::optional<std::uint32_t> special(std::string_view name) {
        if (name == "%tid.x") return kernel_.thread;
        if (name == "%laneid") return kernel_.lane;
        if (name == "%ctaid.x") return kernel_.block;
        if (name == "%ntid.x") return kernel_.threads;
        if (name == "%nctaid.x") return kernel_.blocks;
        if (name == "%tid.y" || name == "%tid.z" || name == "%ctaid.y" || name == "%ctaid.z")
            return constant(0);
        if (name == "%ntid.y" || name == "%ntid.z" || name == "%nctaid.y" || name == "%nctaid.z")
            return constant(1);
        return std::nullopt;
    }

    std::uint32_t slot(std::string_view text, std::size_t line) {
        const std::string name(text);
        for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
            if (const auto found = scope->find(name); found != scope->end()) return found->second;
        if (const auto found = registers_.find(function_ + name); found != registers_.end())
            return found->second;
        if (text[0] == '%') {
            if (const auto found = special(text)) return *found;
            program_.fail(line, "unknown register '" + name + "'");
        }
        if (const auto found = symbols_.find(name); found != symbols_.end()) return constant(found->second);
        if (const auto value = number(name)) return constant(*value);
        program_.fail(line, "unknown operand '" + name + "'");
    }

    static std::optional<std::uint64_t> number(const std::string& text) {
        char* end = nullptr;
        const bool is_bits = text.size() > 2 && text[0] == '0' &&
                             std::string_view("fFdD").find(text[1]) != std::string_view::npos;
        const std::uint64_t value = is_bits ? std::strtoull(text.c_str() + 2, &end, 16)
                                    : text[0] == '-'
                                        ? static_cast<std::uint64_t>(std::strtoll(text.c_str(), &end, 0))
                                        : std::strtoull(text.c_str(), &end, 0);
        if (end == text.c_str() || (*end != '\0' && std::string_view(end) != "U")) return std::nullopt;
        return value;
    }

    Instruction& add(const Instruction& made, std::string_view text, std::size_t line) {
        kernel_.code.push_back(made);
        kernel_.code.back().line = static_cast<std::uint32_t>(line);
        kernel_.text.emplace_back(text);
        kernel_.source.push_back(source_);
        return kernel_.code.back();
    }

    // Puts the address "[%rd4+8]" or "[name]" into `made`.
    void read_address(Instruction& made, std::string_view text, std::size_t line) {
        if (text.size() < 3 || text.front() != '[' || text.back() != ']')
            program_.fail(line, "'" + std::string(text) + "' is not an address");
        text = stripped(text.substr(1, text.size() - 2));
        const std::size_t plus = text.find('+');
        made.a = slot(stripped(text.substr(0, plus)), line);
        if (plus != text.npos)
            made.offset = std::strtoll(std::string(text.substr(plus + 1)).c_str(), nullptr, 0);
    }

    // Returns the slot of a register, or the place in `lists` of several.
    std::uint32_t vector(Instruction& made, std::string_view text, std::size_t line) {
        if (text[0] != '{') return slot(text, line);
        const auto names = split(text.substr(1, text.size() - 2));
        made.count = static_cast<std::uint8_t>(names.size());
        const auto place = static_cast<std::uint32_t>(kernel_.lists.size());
        for (const std::string_view name : names) {
            const std::uint32_t one = name == "_" ? fresh(0) : slot(name, line);
            kernel_.lists.push_back(one);
        }
        return place;
    }

    void read_instruction(std::string_view text, std::size_t line) {
        Instruction made;
        const std::string_view whole = text;
        if (text[0] == '@') {
            const std::size_t end = std::min(text.find_first_of(space), text.size());
            made.negated = text[1] == '!';
            made.guard = slot(text.substr(made.negated ? 2 : 1, end - (made.negated ? 2 : 1)), line);
            text = stripped(text.substr(end));
        }
        const std::size_t end = std::min(text.find_first_of(space), text.size());
        const Opcode op(text.substr(0, end));
        const auto operands = split(text.substr(end));
        const auto require = [&](bool holds) {
            if (!holds) program_.fail(line, "unknown instruction '" + std::string(whole) + "'");
        };
        if (op.name == "bra") {
            require(operands.size() == 1);
            made.kind = Kind::branch;
            jumps_.push_back({kernel_.code.size(), function_ + std::string(operands[0]), line});
        } else if (op.name == "ret" || op.name == "exit") {
            made.kind = function_.empty() || op.name == "exit" ? Kind::exit : Kind::leave;
            if (made.kind == Kind::leave) made.a = return_slot(function_);
        } else if (op.name == "bar" || op.name == "barrier") {
            require(op.has("sync") && !op.has("warp") && operands.size() == 1 && operands[0] == "0");
            made.kind = Kind::barrier;
        } else if (op.name == "call") {
            return read_call(made, operands, whole, line);
        } else if (op.name == "shfl") {
            read_shuffle(made, op, operands, whole, line);
        } else if (op.name == "ld" || op.name == "st") {
            require(operands.size() == 2 && read_space(made, op));
            const bool is_load = op.name == "ld";
            read_address(made, operands[is_load ? 1 : 0], line);
            (is_load ? made.d : made.b) = vector(made, operands[is_load ? 0 : 1], line);
            made.run = operation(op.name + (made.count > 1 ? ".v." : ".") + op.type);
        } else if (op.name == "mov" && operands.size() == 2 &&
                   (operands[0][0] == '{' || operands[1][0] == '{')) {
            const bool unpacks = operands[0][0] == '{';
            made.d = unpacks ? vector(made, operands[0], line) : slot(operands[0], line);
            made.a = unpacks ? slot(operands[1], line) : vector(made, operands[1], line);
            made.run = operation((unpacks ? "unpack." : "pack.") + op.type);
        } else {
            require(operands.size() == operands_of(op.name) && operands[0][0] == '%');
            std::uint32_t* const places[] = {&made.d, &made.a, &made.b, &made.c, &made.e};
            for (std::size_t k = 0; k < operands.size(); ++k) *places[k] = slot(operands[k], line);
            made.run = operation(std::string(text.substr(0, end)));
        }
        require(made.kind != Kind::plain || made.run != nullptr);
        add(made, whole, line);
    }

    // Reads the modifiers of a load or store. Returns false if one is unknown.
    static bool read_space(Instruction& made, const Opcode& op) {
        constexpr std::string_view spaces[] = {"", "global", "shared", "local", "param"};
        for (const std::string& word : op.modifiers) {
            const auto found = std::find(std::begin(spaces), std::end(spaces), word);
            if (found != std::end(spaces))
                made.space = static_cast<Space>(found - std::begin(spaces));
            else if (word != "nc" && word != "v2" && word != "v4")
                return false;
        }
        return true;
    }

    // d is the result, b the predicate or an unused slot; a is the value, c the distance, e the bounds. `offset`
    // holds the slot of the mask, and `count` the mode.
    void read_shuffle(Instruction& made, const Opcode& op, const std::vector<std::string_view>& operands,
                      std::string_view whole, std::size_t line) {
        constexpr const char* modes[] = {"up", "down", "bfly", "idx"};
        const auto mode =
            std::find_if(std::begin(modes), std::end(modes), [&](const char* one) { return op.has(one); });
        if (!op.has("sync") || mode == std::end(modes) || operands.size() != 5)
            program_.fail(line, "unknown instruction '" + std::string(whole) + "'");
        made.kind = Kind::shuffle;
        const std::size_t bar = operands[0].find('|');
        made.d = slot(stripped(operands[0].substr(0, bar)), line);
        made.b = bar == std::string_view::npos ? fresh(0) : slot(stripped(operands[0].substr(bar + 1)), line);
        made.a = slot(operands[1], line);
        made.c = slot(operands[2], line);
        made.e = slot(operands[3], line);
        made.offset = slot(operands[4], line);
        made.count = static_cast<std::uint8_t>(mode - std::begin(modes));
    }

    std::uint32_t return_slot(const std::string& function) {
        const auto [found, is_new] = returns_.try_emplace(function, 0);
        if (is_new) found->second = fresh(0);
        return found->second;
    }

    // Reads "(retval0), name, (param0)": copies the arguments, jumps, and copies the result. No function calls itself.
    void read_call(Instruction& made, std::vector<std::string_view> operands, std::string_view whole,
                   std::size_t line) {
        std::string_view result;
        if (!operands.empty() && operands[0][0] == '(') {
            result = stripped(operands[0].substr(1, operands[0].size() - 2));
            operands.erase(operands.begin());
        }
        const std::string name(operands.empty() ? "" : operands[0]);
        const Program::Body* const function = program_.function(name);
        if (function == nullptr || operands.size() > 2)
            program_.fail(line, "the function of '" + std::string(whole) + "' is not in this PTX");
        if (std::find(called_.begin(), called_.end(), name) == called_.end()) called_.push_back(name);
        const std::vector<Variable> inner = variables_of(*function);
        if (!frames_.contains(name))  // the variables of a function have fixed places
            for (const Variable& one : inner)
                frames_[name].push_back(local_window + take(kernel_.local_bytes, one.bytes, one.alignment));
        std::vector<std::string_view> outer;
        if (!result.empty()) outer.push_back(result);
        if (operands.size() == 2)
            for (const std::string_view one : split(operands[1].substr(1, operands[1].size() - 2)))
                outer.push_back(one);
        if (outer.size() != inner.size())
            program_.fail(line, "'" + std::string(whole) + "' passes " + std::to_string(outer.size()) +
                                    " arguments and results to a function with " +
                                    std::to_string(inner.size()));
        const auto copy = [&](std::size_t k, bool to_function) {
            const std::uint32_t from = slot(outer[k], line), to = constant(frames_[name][k]);
            Instruction moved;
            moved.guard = made.guard;
            moved.negated = made.negated;
            moved.a = to_function ? from : to;
            moved.b = to_function ? to : from;
            moved.offset = static_cast<std::int64_t>(inner[k].bytes);
            moved.run = operation("copy");
            add(moved, whole, line);
        };
        const std::size_t first = result.empty() ? 0 : 1;
        for (std::size_t k = first; k < inner.size(); ++k) copy(k, true);
        made.kind = Kind::call;
        made.d = return_slot(name);
        calls_.push_back({kernel_.code.size(), name});
        add(made, whole, line);
        if (!result.empty()) copy(0, false);
    }

    const Program& program_;
    Kernel kernel_;
    std::string function_;  // the function that is read, or nothing for the kernel
    Source source_;
    std::unordered_map<std::uint64_t, std::uint32_t> constants_;
    std::unordered_map<std::string, std::uint32_t> registers_, labels_, returns_, entry_;
    std::vector<std::unordered_map<std::string, std::uint32_t>> scopes_;  // registers of inner scopes
    std::unordered_map<std::string, std::uint64_t> symbols_;
    std::unordered_map<std::string, std::vector<std::uint64_t>> frames_;
    std::vector<std::string> called_;
    std::vector<Jump> jumps_;
    std::vector<std::pair<std::size_t, std::string>> calls_;
};

}  // namespace

Kernel decode(const Program& program, const std::string& name, const Program::Body& body) {
    return Decoder(program, name).decode(body);
}

}  // namespace tally::ptx
