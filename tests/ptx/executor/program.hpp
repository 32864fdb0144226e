// A `Program` reads PTX, the assembly language that nvcc compiles kernels to, and decodes each kernel when it
// first runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tally::ptx {

struct Allocation;
struct Instruction;
struct Thread;
class Machine;

// Thrown for PTX that the executor cannot read.
struct Unreadable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Run = void (*)(Machine&, Thread&, const Instruction&);

enum class Space : std::uint8_t { any, global, shared, local, parameters };
enum class Kind : std::uint8_t { plain, branch, call, leave, barrier, shuffle, exit };

// Operands are slots: registers, constants, special registers and addresses of symbols are all in one array.
struct alignas(64) Instruction {
    Run run = nullptr;  // only of Kind::plain
    Kind kind = Kind::plain;
    bool negated = false;      // the guard must be false
    Space space = Space::any;  // of a load or store
    std::uint8_t count =
        1;  // registers of a vector; for several, `d` (ld) or `b` (st) is a place in Kernel::lists
    std::uint32_t guard = 0;  // the slot of a predicate; 0 if there is none
    std::uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;
    std::uint32_t target = 0;              // of a branch or a call
    std::uint32_t line = 0;                // in the PTX
    std::int64_t offset = 0;               // of an address
    mutable Allocation* latest = nullptr;  // the allocation that this instruction accessed last
};

struct Parameter {
    std::size_t offset, bytes;
};

struct Source {  // a place in the .cu or .hpp file, if the PTX names it
    std::uint32_t file = 0, line = 0;
};

struct Kernel {
    std::string name;
    std::vector<Parameter> parameters;
    std::size_t parameter_bytes = 0, shared_bytes = 0, local_bytes = 0;
    unsigned most_threads = 1024;
    std::vector<Instruction> code;
    std::vector<std::string> text;     // of each instruction
    std::vector<Source> source;        // of each instruction
    std::vector<std::uint32_t> lists;  // slots of vectors
    std::vector<std::uint64_t> slots;  // the values before a thread runs
    // The slots that differ between threads, blocks and launches.
    std::uint32_t thread = 0, lane = 0, block = 0, threads = 0, blocks = 0;
    mutable std::vector<std::uint64_t> registers;  // the slots of all threads, kept for the next launch
};

// Addresses below the host's own memory select the memory of a block, of a thread, or the parameters.
inline constexpr std::uint64_t shared_window = 0x0100'0000, local_window = 0x4000'0000,
                               parameter_window = 0x7000'0000, first_global = std::uint64_t{1} << 32;

class Program {
public:
    struct Body {
        std::string_view header, code;
        std::size_t header_line, code_line;
    };
    struct Table {  // an initialized array in global memory
        std::string name;
        std::vector<std::byte> bytes;
    };

    explicit Program(std::string text, std::string name);  // throws Unreadable
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    const Kernel& kernel(const std::string& mangled);  // throws Unreadable
    std::string words(Source source) const;            // "softmax.hpp:57", or nothing
    const std::vector<Table>& tables() const { return tables_; }
    const std::map<std::string, Body>& entries() const { return entries_; }  // the kernels
    const Body* function(const std::string& name) const;
    [[noreturn]] void fail(std::size_t line, const std::string& why) const;

private:
    void read_header(std::string_view line, std::size_t number);
    void read_table(std::string_view declaration, std::size_t line);

    std::string name_, text_;
    std::map<std::string, Body> entries_, functions_;
    std::vector<Table> tables_;
    std::map<std::uint32_t, std::string> files_;
    std::map<std::string, std::unique_ptr<const Kernel>> decoded_;
};

// Returns the function that runs an operation such as "add.rn.f32", or null. operations.cpp lists them.
Run operation(const std::string& name);
std::vector<std::string> operations();  // the names of all operations

}  // namespace tally::ptx
