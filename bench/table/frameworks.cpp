// What is said over the pipes, and the file in which all sides find the same weights, pictures and labels.
#include "bench/table/frameworks.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "bench/table/child.hpp"
#include "tally/base/error.hpp"

namespace tally::bench {
namespace {

namespace fs = std::filesystem;

std::string python;  // empty: none was asked for

// One framework on so many cores: several pieces of work, each by its number.
class Framework {
public:
    Framework(std::string name, const std::string& script, int threads)
        : name_(std::move(name)), child_(started(script, threads)) {
        const auto hello = child_->answer();
        if (hello && hello->starts_with("ready ")) version_ = hello->substr(6);
    }
    clockid_t processor_time() const { return child_->processor_time(); }
    const std::string& version() const { return version_; }  // empty where it cannot be imported

    void ask(const std::string& line) {
        child_->tell(line);
        const auto answer = child_->answer();
        if (answer != "done")
            throw Error("[bench] " + name_ + " answered '" + answer.value_or("nothing, it has ended") +
                        "' to '" + line + "'");
    }

private:
    static std::unique_ptr<Child> started(const std::string& script, int threads) {
        const Pinned pinned(threads);
        return std::make_unique<Child>(std::vector<std::string>{
            python, "-B", std::string(TALLY_BENCH_PEERS) + "/" + script, std::to_string(threads)});
    }

    std::string name_, version_;
    std::unique_ptr<Child> child_;
};

// Started when it is first asked for; each number of threads has a process of its own.
const std::shared_ptr<Framework>& framework(const std::string& name, int threads) {
    static std::map<std::pair<std::string, int>, std::shared_ptr<Framework>> started;
    auto& here = started[{name, threads}];
    if (!here)
        here = std::make_shared<Framework>(name, name == jax ? "jax_side.py" : "torch_side.py", threads);
    return here;
}

class ScratchFile {
public:
    ScratchFile() : path_(fs::temp_directory_path() / ("tally-bench-" + std::to_string(::getpid()))) {}
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    ~ScratchFile() {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

void write_problem(const fs::path& path, const Mlp& mlp) {
    std::ofstream file(path, std::ios::binary);
    file << R"({"rows": )" << mlp.rows << R"(, "micro": )" << mlp.micro << R"(, "rate": )" << mlp.rate
         << R"(, "sizes": [)";
    for (std::size_t i = 0; i < mlp.sizes.size(); ++i) file << (i > 0 ? ", " : "") << mlp.sizes[i];
    file << "]}\n";
    const auto write = [&](const auto& numbers) {
        file.write(reinterpret_cast<const char*>(numbers.data()),
                   static_cast<std::streamsize>(numbers.size() * sizeof numbers[0]));
    };
    for (std::size_t i = 0; i < mlp.layers(); ++i) write(mlp.weight(i)), write(mlp.bias(i));
    write(mlp.pictures());
    write(mlp.labels());
    if (!file.flush()) throw Error("[bench] cannot write " + path.string());
}

// Gradients, and weights after an update.
Numbers read_numbers(const fs::path& path, const Mlp& mlp) {
    std::ifstream file(path, std::ios::binary);
    Numbers all;
    for (int twice = 0; twice < 2; ++twice)
        for (std::size_t i = 0; i < mlp.layers(); ++i)
            for (const std::size_t size : {mlp.weight(i).size(), mlp.bias(i).size()}) {
                std::vector<float> numbers(size);
                file.read(reinterpret_cast<char*>(numbers.data()),
                          static_cast<std::streamsize>(size * sizeof(float)));
                all.push_back(doubles(numbers));
            }
    if (!file) throw Error("[bench] " + path.string() + " is too short");
    return all;
}

// A piece of work of a framework, which forgets it at the end.
class Work {
public:
    Work(std::shared_ptr<Framework> framework, const Mlp& mlp)
        : framework_(std::move(framework)), mlp_(mlp), number_(" " + std::to_string(++last_number)) {
        const ScratchFile file;
        write_problem(file.path(), mlp);
        framework_->ask("mlp" + number_ + " " + file.path().string());
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
        try {
            framework_->ask("forget" + number_);
        } catch (const Error&) {  // it has ended, and with it all its work
        }
    }
    void run(std::size_t updates) { framework_->ask("run" + number_ + " " + std::to_string(updates)); }
    Numbers numbers() {
        const ScratchFile file;
        framework_->ask("numbers" + number_ + " " + file.path().string());
        return read_numbers(file.path(), mlp_);
    }

private:
    static inline int last_number = 0;
    std::shared_ptr<Framework> framework_;
    Mlp mlp_;
    std::string number_;
};

}  // namespace

void use_frameworks(const std::string& folder) {
    python = folder + "/bin/python";
    if (::access(python.c_str(), X_OK) != 0)
        throw Error("[bench] " + python + " is not there: tools/bench-peers " + folder +
                    " installs JAX and PyTorch");
}

std::vector<std::pair<std::string, bool>> frameworks() {
    std::vector<std::pair<std::string, bool>> all;
    for (const std::string name : {jax, pytorch}) {
        const std::string version = python.empty() ? "" : framework(name, 1)->version();
        all.emplace_back(version.empty() ? name : version, !version.empty());
    }
    return all;
}

void add_frameworks(Row& row, const Mlp& mlp) {
    if (python.empty()) return;
    for (const char* name : {jax, pytorch}) {
        const auto& here = framework(name, row.threads);
        if (here->version().empty()) continue;
        const auto work = std::make_shared<Work>(here, mlp);
        row.sides.push_back({name, Role::peer, [work] { work->run(1); }, [work] { return work->numbers(); }});
        row.sides.back().processor_time = here->processor_time();
        row.sides.back().many = [work](std::size_t updates) { work->run(updates); };
    }
}

}  // namespace tally::bench
