// Changes instructions, and compares launches.
#include "mutants.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <regex>
#include <set>
#include <unordered_set>

#include "decode.hpp"

namespace tally::ptx {

namespace {

constexpr std::size_t most_runs = 1000;  // of a mutant

bool has(const std::string& line, const char* word) { return line.find(word) != line.npos; }

// nvcc divides numbers of 64 bits by instructions of 32 bits if they are small. A branch that makes this choice may go either way.
class ChoicesOfDivision {
public:
    void read(const std::string& line) {
        static const std::regex high(R"(\s*and\.b64 +(%rd\d+), %rd\d+, -4294967296;.*)"),
            choice(R"(\s*setp\.(?:eq|ne)\.s64 +(%p\d+), (%rd\d+), 0;.*)");
        std::smatch found;
        if (has(line, "and.b64") && std::regex_match(line, found, high)) high_words_.insert(found[1]);
        if (has(line, "setp.") && std::regex_match(line, found, choice) && high_words_.contains(found[2]))
            choices_.insert(found[1]);
    }
    bool contains(const std::string& predicate) const { return choices_.contains(predicate); }

private:
    std::set<std::string> high_words_, choices_;
};

// Adds the size of an element to the address of an access.
std::string moved(const std::string& line, const std::string& bits) {
    static const std::regex address(R"(\[([%$\w]+)(?:\+(-?\d+))?\])");
    std::smatch found;
    if (!std::regex_search(line, found, address)) throw Unreadable("[ptx] no address in '" + line + "'");
    const long offset = (found[2].matched ? std::stol(found[2]) : 0) + std::stol(bits) / 8;
    return found.prefix().str() + "[" + found[1].str() + "+" + std::to_string(offset) + "]" +
           found.suffix().str();
}

std::byte* at(const Write& write) { return reinterpret_cast<std::byte*>(write.address); }

Values values_at(const std::vector<Write>& places) {
    Values values(places.size());
    for (std::size_t k = 0; k < places.size(); ++k) std::memcpy(&values[k], at(places[k]), places[k].bytes);
    return values;
}
void set_values(const std::vector<Write>& places, const Values& values) {
    for (std::size_t k = 0; k < places.size(); ++k) std::memcpy(at(places[k]), &values[k], places[k].bytes);
}
void undo(const std::vector<Write>& written) {
    for (std::size_t k = written.size(); k-- > 0;)
        std::memcpy(at(written[k]), &written[k].before, written[k].bytes);
}

Kernel decode_changed(const Program& program, const std::string& name, const Mutant& mutant) {
    Program::Body body = program.entries().at(name);
    std::size_t from = 0;
    for (std::size_t number = body.code_line; number < mutant.line; ++number)
        from = body.code.find('\n', from) + 1;
    const std::string text = std::string(body.code.substr(0, from)) + mutant.after +
                             std::string(body.code.substr(from + mutant.before.size()));
    body.code = text;
    Kernel made = decode(program, name, body);
    made.text.assign(made.text.size(), "");  // saves memory, because the findings of a mutant are not printed
    return made;
}

}  // namespace

std::vector<Mutant> mutants_of(const Program::Body& kernel) {
    static const std::regex shuffle(R"((.*shfl\.sync\.(\w+)\.b32 .*), (\S+), (\S+), (\S+);\s*)"),
        access(R"(\s*(?:@!?%p\d+ +)?(?:ld|st)\.shared\.(?:v\d\.)?[a-z](\d+) .*)"),
        branch(R"((\s*)@(!?)(%p\d+) (bra .*))");
    std::vector<Mutant> all;
    ChoicesOfDivision choices;
    std::size_t number = kernel.code_line;
    for (std::size_t from = 0; from < kernel.code.size(); ++number) {
        const std::size_t end = std::min(kernel.code.find('\n', from), kernel.code.size());
        const std::string line(kernel.code.substr(from, end - from));
        from = end + 1;
        choices.read(line);
        const auto add = [&](const char* kind, std::string changed) {
            all.push_back({.kind = kind,
                           .line = number,
                           .before = line,
                           .after = std::move(changed),
                           .kernel = nullptr});
        };
        std::smatch found;
        if (has(line, "bar.sync")) {
            add("barrier", "");
        } else if (has(line, "shfl.sync") && std::regex_match(line, found, shuffle)) {
            // Distances are powers of two, and the lanes of shfl.idx begin with 0.
            add("shuffle", found[1].str() + ", " + (found[2] == "down" ? "3" : "7") + ", " + found[4].str() +
                               ", " + found[5].str() + ";");
            add("mask", found[1].str() + ", " + found[3].str() + ", " + found[4].str() + ", 0x7FFFFFFF;");
        } else if (has(line, ".shared.") && std::regex_match(line, found, access)) {
            add("shared", moved(line, found[1]));
        } else if (has(line, "bra") && std::regex_match(line, found, branch) && !choices.contains(found[3])) {
            add("predicate", found[1].str() + "@" + (found[2].length() == 0 ? "!" : "") + found[3].str() +
                                 " " + found[4].str());
        }
    }
    return all;
}

Mutants::Mutants(Program& program, const std::string& chosen) : program_(program), all_(chosen == "all") {
    std::size_t count = 0;
    for (const auto& [name, body] : program.entries()) count += (alive_[name] = mutants_of(body)).size();
    if (all_) return;
    std::smatch found;
    if (!std::regex_match(chosen, found, std::regex(R"((\d{1,6}):(\d{1,9}))")))
        throw Unreadable("[ptx] TALLY_PTX_MUTANTS is '" + chosen + "'; it may be 'all' or NUMBER:SEED");
    std::vector<bool> takes(count);
    std::fill_n(takes.begin(), std::min<std::size_t>(count, std::stoul(found[1])), true);
    std::shuffle(takes.begin(), takes.end(), std::mt19937(static_cast<unsigned>(std::stoul(found[2]))));
    std::size_t next = 0;
    for (auto& [name, mutants] : alive_)
        std::erase_if(mutants, [&](const Mutant&) { return !takes[next++]; });
    std::erase_if(alive_, [](const auto& one) { return one.second.empty(); });
}

void Mutants::judge(const Launch& launch, const std::vector<bool>& executed) {
    std::set<std::size_t> lines;
    for (std::size_t k = 0; k < executed.size(); ++k)
        if (executed[k]) lines.insert(launch.kernel.code[k].line);
    std::vector<Mutant>& mutants = alive_.at(launch.kernel.name);
    std::vector<Mutant*> chosen;
    for (Mutant& mutant : mutants)
        if (lines.contains(mutant.line) && mutant.runs < most_runs) chosen.push_back(&mutant);
    for (Mutant* const mutant : chosen)
        if (!mutant->kernel)
            mutant->kernel =
                std::make_unique<const Kernel>(decode_changed(program_, launch.kernel.name, *mutant));

    std::unordered_set<std::uint64_t> places;
    for (const Write& one : launch.written) places.insert(one.address);
    const Values results = values_at(launch.written);
    undo(launch.written);
    Others others;
    for (Mutant* const mutant : chosen)
        for (const char* const order : {"forward", "reverse", "random:1"}) {
            run(*mutant, launch, launch.blocks, order, results, places, others);
            if (launch.blocks > 1) run(*mutant, launch, 1, order, results, places, others);
            if (std::string_view(mutant->kind) != "barrier") break;  // the order has no effect
        }
    set_values(launch.written, results);
    for (const auto& [mutant, own, values] : others)
        if (values_at(own) != values) mutant->changes_result = true;

    const auto first = std::stable_partition(mutants.begin(), mutants.end(),
                                             [&](const Mutant& one) { return !has_ended(one); });
    std::for_each(first, mutants.end(), [](Mutant& one) { one.kernel.reset(); });
    std::move(first, mutants.end(), std::back_inserter(ended_[launch.kernel.name]));
    mutants.erase(first, mutants.end());
    if (mutants.empty()) alive_.erase(launch.kernel.name);
}

bool Mutants::has_ended(const Mutant& mutant) const {
    if (!all_) return mutant.is_found || mutant.changes_result;
    return mutant.is_found && (mutant.changes_result || mutant.is_stopped);
}

void Mutants::run(Mutant& mutant, const Launch& launch, unsigned blocks, const char* order,
                  const Values& results, const std::unordered_set<std::uint64_t>& places, Others& others) {
    if (has_ended(mutant)) return;
    ++mutant.runs;
    std::vector<Write> own;
    registers_.clear();
    mutant.kernel->registers.swap(registers_);  // all mutants use the same memory
    Machine machine(program_, *mutant.kernel, blocks, launch.threads, launch.parameters,
                    Schedule::from(order));
    machine.record(own);
    machine.set_limit(4 * launch.steps + 100'000);
    machine.run();
    mutant.kernel->registers.swap(registers_);
    mutant.is_found = mutant.is_found || !machine.findings().empty();
    mutant.is_stopped = mutant.is_stopped || machine.is_stopped();
    if (!machine.is_stopped() && values_at(launch.written) != results) mutant.changes_result = true;
    if (!machine.is_stopped() && !mutant.changes_result) {
        std::vector<Write> elsewhere;
        std::copy_if(own.begin(), own.end(), std::back_inserter(elsewhere),
                     [&](const Write& one) { return !places.contains(one.address); });
        if (!elsewhere.empty()) others.push_back({&mutant, elsewhere, values_at(elsewhere)});
    }
    undo(own);
}

void Mutants::write_report(const std::string& file) const {
    std::ofstream out(file);
    for (const auto* list : {&ended_, &alive_})
        for (const auto& [name, mutants] : *list) {
            const Kernel& kernel = program_.kernel(name);
            std::map<std::size_t, std::string> sources;
            for (std::size_t k = 0; k < kernel.code.size(); ++k)
                sources.emplace(kernel.code[k].line, program_.words(kernel.source[k]));
            for (const Mutant& m : mutants)
                out << m.kind << '\t' << name << '\t' << m.line << '\t' << sources[m.line] << '\t' << m.runs
                    << '\t' << m.is_found << '\t' << m.changes_result << '\t' << m.before << '\n';
        }
    if (!out.flush()) throw Unreadable("[ptx] the report cannot be written to " + file);
}

}  // namespace tally::ptx
