// Collects the information that ./learn doctor prints.
#include "course/kit/runner/doctor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/Version.hpp>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "course/kit/runner/course.hpp"
#include "course/kit/terminal.hpp"
#include "tally/base/version.hpp"
#include "tally/device/backend.hpp"
#include "tally/kernels/blas.hpp"

namespace tally::lesson {

namespace {
struct Optional {
    const char* name;
    const char* found_as;  // a program in the PATH, or the path of a file
    const char* adds;
    const char* package;
};

// Lists optional packages that this version can use.
constexpr std::array optional_things{
    Optional{"graphviz", "dot", "your own layout and styling of the .dot pictures", "graphviz"},
    Optional{"python3", "python3", "the tests of step mode at a pseudo-terminal", "python3"},
    Optional{"LibTorch", "/usr/include/torch/csrc/api/include/torch/torch.h",
             "a peer to compare with in bench/", "libtorch-dev"},
};

bool is_installed(std::string_view what) {
    if (what.front() == '/') return std::filesystem::exists(what);
    const char* path = std::getenv("PATH");
    for (std::string_view remaining = path == nullptr ? "" : path; !remaining.empty();) {
        const std::size_t end = std::min(remaining.find(':'), remaining.size());
        if (::access(fmt::format("{}/{}", remaining.substr(0, end), what).c_str(), X_OK) == 0) return true;
        remaining.remove_prefix(std::min(end + 1, remaining.size()));
    }
    return false;
}
}  // namespace

std::vector<Finding> findings(const Flags& flags, const std::string& lessons_folder) {
    std::vector<Finding> all;
    const auto add = [&](const char* about, std::string name, std::string text) {
        all.push_back({about, std::move(name), std::move(text)});
    };

    add("versions", "tally",
        fmt::format("{}.{}.{}", TALLY_VERSION_MAJOR, TALLY_VERSION_MINOR, TALLY_VERSION_PATCH));
#ifdef __clang__
    add("versions", "compiler", fmt::format("clang {}", __clang_version__));
#else
    add("versions", "compiler", fmt::format("g++ {}", __VERSION__));
#endif
    add("versions", "fmt",
        fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
    add("versions", "CLI11", CLI11_VERSION);
    add("versions", "nlohmann-json",
        fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                    NLOHMANN_JSON_VERSION_PATCH));

    add("devices", "cpu", fmt::format("yes, {} hardware threads", std::thread::hardware_concurrency()));
    add("devices", "OpenBLAS", detail::blas_kernels() + " kernels");
    add("devices", "cuda",
        backend::unavailable_reason().empty() ? "yes" : "no: " + backend::unavailable_reason());

    try {
        add("lessons", "built",
            fmt::format("{} in {}", find_programs(lessons_folder).size(), lessons_folder));
    } catch (const std::exception& error) {
        add("lessons", "built", error.what());
    }

    const Mode mode = mode_for(flags, Environment::current());
    const auto window = window_width();
    add("terminal", "width", window ? fmt::format("{} columns", *window) : "the output is not a terminal");
    add("terminal", "step mode", mode.not_waiting.empty() ? "yes" : fmt::format("no: {}", mode.not_waiting));
    add("terminal", "colours", mode.style.colour ? "yes" : "no");
    add("terminal", "text", mode.style.ascii ? "ASCII" : "UTF-8");

    const char* chosen = std::getenv("TALLY_INSTALL");
    const std::string install = chosen == nullptr ? "apt-get install --no-install-recommends" : chosen;
    for (const auto& thing : optional_things) {
        add("optional", thing.name,
            is_installed(thing.found_as)
                ? std::string("there")
                : fmt::format("missing; adds {}: {} {}", thing.adds, install, thing.package));
    }
    return all;
}

}  // namespace tally::lesson
