// Measures two products of the course's network with each core type of OpenBLAS.
#include "bench/table/openblas.hpp"

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>
#include <vector>

#include "bench/table/aligned.hpp"
#include "bench/table/child.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/svg.hpp"

namespace tally::bench {
namespace {

constexpr const char *wanted = "OPENBLAS_CORETYPE", *told = "TALLY_BENCH_OPENBLAS";
constexpr int rounds = 9;
constexpr double worth = 0.97;  // a core type counts as faster if its relative time is at most this number

struct Candidate {
    std::string core_type;  // value of OPENBLAS_CORETYPE; empty: the default
    std::string kernels = {};
    std::unique_ptr<Child> process = {};
    double best = std::numeric_limits<double>::infinity();  // ms
};

std::vector<Candidate> started(const std::string& program) {
    std::vector<Candidate> all;
    for (const char* core_type : {"", "Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"}) {
        Candidate candidate{core_type};
        if (*core_type) ::setenv(wanted, core_type, 1);
        candidate.process = std::make_unique<Child>(std::vector<std::string>{program, measure_argument});
        ::unsetenv(wanted);
        const auto kernels = candidate.process->answer();
        // For an unknown core type, OpenBLAS uses its default core type, which is already in the list.
        if (!kernels || (*core_type && *kernels != core_type)) continue;
        candidate.kernels = *kernels;
        all.push_back(std::move(candidate));
    }
    return all;
}

// Measures the core types alternately. A process crashes if its core type uses instructions that the
// processor lacks.
void measure(std::vector<Candidate>& all) {
    for (int round = 0; round < rounds; ++round)
        for (Candidate& candidate : all) {
            candidate.process->tell("again");
            if (const auto answer = candidate.process->answer())
                candidate.best = std::min(candidate.best, std::stod(*answer));
            else
                candidate.best = std::numeric_limits<double>::infinity();
        }
}

std::string words(const std::vector<Candidate>& all) {
    std::string list;
    for (const Candidate& c : all)
        list += (list.empty() ? "" : ", ") +
                (c.core_type.empty() ? "as found (" + c.kernels + ")" : c.kernels) + " " +
                detail::with_decimals(c.best, 2) + " ms";
    return list;
}

}  // namespace

int answer_measurements() {
    const int rows = 64, in = 784, out = 512;
    const Aligned x(std::vector<float>(static_cast<std::size_t>(rows * in), 0.5f)),
        w(std::vector<float>(static_cast<std::size_t>(in * out), 0.25f));
    Aligned y(static_cast<std::size_t>(rows * out)), dw(static_cast<std::size_t>(in * out));
    std::cout << openblas_get_corename() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 5; ++i) {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, out, in, 1, x, in, w, out, 0, y,
                        out);
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, in, out, rows, 1, x, in, y, out, 0, dw, out);
        }
        std::cout
            << std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()
            << std::endl;
    }
    return 0;
}

void restart_with_best_core_type(char** argv) {
    if (std::getenv(wanted) != nullptr || std::getenv(told) != nullptr) return;
    char path[4096];
    const auto length = ::readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    std::vector<Candidate> all;
    {
        const Pinned pinned(1);  // applies to the started processes too
        all = started(path);
        measure(all);
    }
    const auto best = std::min_element(
        all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.best < b.best; });
    if (best == all.end() || !all.front().core_type.empty() || !std::isfinite(best->best)) return;
    ::setenv(told, words(all).c_str(), 1);
    if (best->best < worth * all.front().best) ::setenv(wanted, best->kernels.c_str(), 1);
    all.clear();
    ::execv(path, argv);
    ::unsetenv(told), ::unsetenv(wanted);
}

std::string openblas_kernels() {
    const char *const measured = std::getenv(told), *const asked = std::getenv(wanted);
    return std::string("OpenBLAS at ") + openblas_get_corename() +
           (measured ? ", of " + std::string(measured)
            : asked  ? ", as OPENBLAS_CORETYPE says"
                     : ", as found");
}

}  // namespace tally::bench
