// Formats tables of results.
#include "bench/table/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/table/frameworks.hpp"
#include "bench/table/libtorch.hpp"
#include "bench/table/openblas.hpp"
#include "bench/table/rows.hpp"
#include "bench/table/vectors.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/svg.hpp"

namespace tally::bench {
namespace {

using svg::formatted;

std::string in_time(double ns) {
    if (ns < 1e3) return (ns < 100 ? tally::detail::to_text(ns, 3) : detail::with_decimals(ns, 0)) + " ns";
    if (ns < 1e6) return tally::detail::to_text(ns / 1e3, 3) + " us";
    return tally::detail::to_text(ns / 1e6, ns < 1e9 ? 3 : 4) + " ms";
}

const char* word(Role role) { return role == Role::tally ? "tally" : role == Role::floor ? "floor" : "peer"; }

std::string to_text(const Verdict& v) {
    if (!v.measured) return v.asked + ": not measured";
    return v.asked + ": " + tally::detail::to_text(*v.measured, 4) + ", " +
           (v.holds ? "holds" : "**misses**");
}

std::string to_text(const Timed& side, bool first) {
    std::string words = in_time(side.median) + " (" + in_time(side.minimum) + ")";
    if (!first)
        words += side.ratio >= 1 ? ", tally takes " + tally::detail::to_text(side.ratio, 3) + " x"
                                 : ", tally is " + tally::detail::to_text(1 / side.ratio, 3) + " x as fast";
    if (side.mebibytes) words += ", " + tally::detail::to_text(*side.mebibytes, 4) + " MiB";
    return words;
}

std::string joined(const std::vector<std::string>& parts) {
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : "<br>") + part;
    return all.empty() ? " " : all;
}

std::string sides(const Result& row, Role role) {
    std::vector<std::string> parts;
    for (std::size_t i = 1; i < row.sides.size(); ++i)
        if ((row.sides[i].role == Role::peer) == (role == Role::peer))
            parts.push_back(row.sides[i].name + " " + to_text(row.sides[i], false));
    return joined(parts);
}

std::string verdicts(const std::vector<Verdict>& all) {
    std::vector<std::string> parts;
    for (const Verdict& v : all) parts.push_back(to_text(v));
    return joined(parts);
}

std::string line_after(const char* path, const std::string& key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(key)) return line.substr(line.find(':') + 2);
    return "unknown";
}

std::string words(const Machine& m) {
    std::string peers;
    for (const auto& [name, here] : m.peers)
        peers += (peers.empty() ? "" : ", ") + name + (here ? "" : " (absent)");
    return m.date + ", " + m.processor + ", compiled for " + m.vectors + ", " + std::to_string(m.cores) +
           " cores, load " + detail::with_decimals(m.load, 1) + ", " + m.compiler + " " + m.flags +
           ", commit " + m.commit + ". " + m.openblas + ". Peers: " + peers + "." +
           (m.processor_time ? " CPU time for rows with one thread, elapsed time for others." : "");
}

std::string to_text(const Sweep& sweep) {
    std::string words = sweep.title + (sweep.catches_up ? ". " + *sweep.catches_up : "");
    return "![" + words + "](" + sweep.name + ".svg)\n\n" + words + ".\n";
}

// Returns the points of a sweep as a table with one row for each x.
std::string table(const Sweep& sweep) {
    if (!sweep.as_table) return {};
    std::string head = "\n| " + sweep.x, ruler = "\n|---", body;
    for (const Line& line : sweep.lines) head += " | " + line.name, ruler += "|---";
    for (std::size_t i = 0; i < sweep.lines.at(0).points.size(); ++i) {
        body += "| " + tally::detail::to_text(sweep.lines[0].points[i].first, 6);
        for (const Line& line : sweep.lines)
            body += " | " + tally::detail::to_text(line.points.at(i).second, 3);
        body += " |\n";
    }
    return head + " |" + ruler + "|\n" + body;
}

nlohmann::ordered_json verdicts_json(const std::vector<Verdict>& all) {
    auto list = nlohmann::ordered_json::array();
    for (const Verdict& v : all) {
        list.push_back({{"asked", v.asked}, {"measured", nullptr}, {"holds", v.holds}});
        if (v.measured) list.back()["measured"] = *v.measured;
    }
    return list;
}

nlohmann::ordered_json row_json(const Result& row) {
    nlohmann::ordered_json made{{"name", row.name},     {"title", row.title},
                                {"note", row.note},     {"threads", row.threads},
                                {"rounds", row.rounds}, {"sides", nlohmann::ordered_json::array()}};
    for (const Timed& side : row.sides) {
        made["sides"].push_back({{"name", side.name},
                                 {"role", word(side.role)},
                                 {"median_ns", side.median},
                                 {"minimum_ns", side.minimum},
                                 {"tally_over_it", side.ratio},
                                 {"mebibytes", nullptr}});
        if (side.mebibytes) made["sides"].back()["mebibytes"] = *side.mebibytes;
    }
    made["must"] = verdicts_json(row.must);
    made["aims"] = verdicts_json(row.aims);
    return made;
}

nlohmann::ordered_json sweep_json(const Sweep& sweep) {
    nlohmann::ordered_json made{{"name", sweep.name},
                                {"title", sweep.title},
                                {"x", sweep.x},
                                {"y", sweep.y},
                                {"lines", nlohmann::ordered_json::array()}};
    for (const Line& line : sweep.lines)
        made["lines"].push_back({{"name", line.name}, {"points", line.points}});
    made["catches_up"] = nullptr;
    if (sweep.catches_up) made["catches_up"] = *sweep.catches_up;
    return made;
}

}  // namespace

std::string in_words(const Machine& m) {
    return m.processor + ", compiled for " + m.vectors +
           (cpu::vectors == cpu::Vectors::none ? ": the goals are those for AVX-512" : "") + "\n";
}

Machine this_machine(const Effort& effort) {
    Machine m;
    char date[32];
    const std::time_t now = std::time(nullptr);
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
    m.date = date;
    m.processor = line_after("/proc/cpuinfo", "model name");
    m.vectors = name_of(cpu::vectors);
#ifdef __clang__
    m.compiler = "clang " __clang_version__;
#else
    m.compiler = "g++ " __VERSION__;
#endif
    m.flags = TALLY_BENCH_FLAGS;
    const char* commit = std::getenv("TALLY_COMMIT");
    m.commit = commit && *commit ? commit : "unknown";
    m.cores = std::thread::hardware_concurrency();
    if (getloadavg(&m.load, 1) != 1) m.load = std::nan("");
    const std::string version = libtorch_version();
    m.peers.emplace_back(libtorch + (version.empty() ? "" : " " + version), !version.empty());
    for (auto& framework : frameworks()) m.peers.push_back(std::move(framework));
    m.openblas = openblas_kernels();
    m.processor_time = effort.processor;
    return m;
}

std::string text(const Result& row) {
    std::string all = row.title + (row.note.empty() ? "" : " (" + row.note + ")") + "\n";
    for (std::size_t i = 0; i < row.sides.size(); ++i)
        all += formatted("  %-20s ", row.sides[i].name.c_str()) + to_text(row.sides[i], i == 0) + "\n";
    for (const Verdict& v : row.must) all += "  must  " + to_text(v) + "\n";
    for (const Verdict& v : row.aims) all += "  aims  " + to_text(v) + "\n";
    return all;
}

std::string won_and_lost(const std::vector<Result>& rows) {
    std::vector<std::string> peers;
    for (const Result& row : rows)
        for (const Timed& side : row.sides)
            if (side.role == Role::peer && std::find(peers.begin(), peers.end(), side.name) == peers.end())
                peers.push_back(side.name);
    std::string all;
    for (const std::string& peer : peers) {
        std::string won, lost;
        for (const Result& row : rows)
            for (const Timed& side : row.sides)
                if (side.name == peer)
                    (side.ratio < 1 ? won : lost) +=
                        "; " + row.name + " " +
                        tally::detail::to_text(side.ratio < 1 ? 1 / side.ratio : side.ratio, 3) + " x";
        all += "- " + peer + ": tally is faster in " + (won.empty() ? "nothing" : won.substr(2)) +
               ". Slower in " + (lost.empty() ? "nothing" : lost.substr(2)) + ".\n";
    }
    return all;
}

std::string markdown(const Report& report) {
    std::string all =
        "# Benchmark\n\nThis page is for you if you need the result of each row of `./learn bench`. "
        "docs/performance.md says how they are measured. Floors are programs that do the same arithmetic "
        "with little or no autograd, and peers are other libraries.\n\n" +
        words(report.machine) +
        "\n\nTimes are medians, with minima in brackets. A ratio is the median of the ratios of all rounds; "
        "trust the ratios more than the times.\n\n"
        "| work | tally | floors | peers | must reach | aims for |\n|---|---|---|---|---|---|\n";
    std::size_t asked = 0, holds = 0;
    for (const Result& row : report.rows) {
        all += "| " + row.title + (row.note.empty() ? "" : "<br>" + row.note) + " | " +
               to_text(row.sides[0], true) + " | " + sides(row, Role::floor) + " | " +
               sides(row, Role::peer) + " | " + verdicts(row.must) + " | " + verdicts(row.aims) + " |\n";
        for (const Verdict& v : row.must)
            if (v.measured) ++asked, holds += v.holds;
    }
    all += "\ntally reaches " + std::to_string(holds) + " of " + std::to_string(asked) +
           " targets of the column \"must reach\".\n";
    all += "\n" + won_and_lost(report.rows);
    for (const Sweep& sweep : report.sweeps) all += "\n" + to_text(sweep) + table(sweep);
    return all;
}

std::string json(const Report& report) {
    const Machine& m = report.machine;
    nlohmann::ordered_json peers;
    for (const auto& [name, here] : m.peers) peers[name] = here;
    nlohmann::ordered_json made{{"v", 1},
                                {"machine",
                                 {{"date", m.date},
                                  {"processor", m.processor},
                                  {"vectors", m.vectors},
                                  {"cores", m.cores},
                                  {"load", m.load},
                                  {"compiler", m.compiler},
                                  {"flags", m.flags},
                                  {"commit", m.commit},
                                  {"openblas", m.openblas},
                                  {"processor_time", m.processor_time},
                                  {"peers", peers}}},
                                {"rows", nlohmann::ordered_json::array()},
                                {"sweeps", nlohmann::ordered_json::array()}};
    for (const Result& row : report.rows) made["rows"].push_back(row_json(row));
    for (const Sweep& sweep : report.sweeps) made["sweeps"].push_back(sweep_json(sweep));
    return made.dump(2) + "\n";
}

}  // namespace tally::bench
