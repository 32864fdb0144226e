// Runs every row of the table and every sweep. tally and the programs compared with tally run alternately.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/table/frameworks.hpp"
#include "bench/table/openblas.hpp"
#include "bench/table/report.hpp"
#include "bench/table/rows.hpp"
#include "tally/base/error.hpp"
#include "tally/base/write_file.hpp"

namespace {

using namespace tally;
using namespace tally::bench;

struct Options {
    Effort effort;
    std::string folder = ".", only, frameworks;
    bool sweeps = true;
};

[[noreturn]] void usage(const std::string& wrong) {
    std::fprintf(stderr,
                 "%s\nbench_table [--quick] [--rounds N] [--only TEXT] [--no-sweeps] [--frameworks FOLDER]\n"
                 "            [--processor-time] [-o FOLDER]\n",
                 wrong.c_str());
    std::exit(2);
}

Options options(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto value = [&] {
            if (i + 1 == argc) usage(word + " requires a value");
            return std::string(argv[++i]);
        };
        if (word == "--quick")
            o.effort = {11, 2, true, o.effort.processor};
        else if (word == "--processor-time")
            o.effort.processor = true;
        else if (word == "--rounds")
            o.effort.rounds = std::max(1, std::atoi(value().c_str()));
        else if (word == "--only")
            o.only = value();
        else if (word == "--frameworks")
            o.frameworks = value();
        else if (word == "--no-sweeps")
            o.sweeps = false;
        else if (word == "-o")
            o.folder = value();
        else
            usage("no option '" + word + "'");
    }
    return o;
}

void write(const std::string& folder, const std::string& name, const std::string& content) {
    write_file_atomically(folder + "/" + name, content);
}

int run(const Options& o) {
    std::filesystem::create_directories(o.folder);
    if (!o.frameworks.empty()) use_frameworks(o.frameworks);
    Report report{this_machine(o.effort), {}, {}};
    std::fputs(in_words(report.machine).c_str(), stdout);
    const auto asked = [&](const std::string& name) { return name.find(o.only) != std::string::npos; };
    for (const auto& group :
         {teaching_rows(), network_rows(), product_rows(), loss_rows(), elementwise_rows(), memory_rows()})
        for (const Planned& planned : group) {
            if (!asked(planned.name) || (planned.slow && o.effort.quick)) continue;
            report.rows.push_back(race(planned.make(), o.effort));
            std::fputs(text(report.rows.back()).c_str(), stdout);
            std::fflush(stdout);
        }
    for (const PlannedSweep& planned : sweeps()) {
        if (!o.sweeps || !asked(planned.name)) continue;
        report.sweeps.push_back(planned.measure(o.effort));
        write(o.folder, planned.name + ".svg", to_svg(report.sweeps.back()));
        std::printf("%s: %s.svg. %s\n", report.sweeps.back().title.c_str(), planned.name.c_str(),
                    report.sweeps.back().catches_up.value_or("").c_str());
        std::fflush(stdout);
    }
    if (report.rows.empty() && report.sweeps.empty()) usage("no row or sweep is named like '" + o.only + "'");
    std::fputs(won_and_lost(report.rows).c_str(), stdout);
    write(o.folder, "bench.json", json(report));
    write(o.folder, "bench.md", markdown(report));
    std::printf("written: %s/bench.json, %s/bench.md\n", o.folder.c_str(), o.folder.c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc == 2 && std::string(argv[1]) == measure_argument) return answer_measurements();
        restart_with_best_core_type(argv);
        return run(options(argc, argv));
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
