// Writes a file of weights, pictures and labels for JAX and PyTorch, and sends commands to these frameworks
// through pipes.
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

std::string python;  // empty: frameworks are not used

// A `Framework` is a process that runs JAX or PyTorch on a number of cores. The process can run several
// benchmarks, each of which has a number.
class Framework {
public:
    Framework(std::string name, const std::string& script, int threads)
        : name_(std::move(name)), child_(started(script, threads)) {
        const auto hello = child_->answer();
        if (hello && hello->starts_with("ready ")) version_ = hello->substr(6);
    }
    clockid_t processor_time() const { return child_->processor_time(); }
    const std::string& version() const { return version_; }  // empty if Python cannot import the framework

    void ask(const std::string& line) {
        if (const std::string said = answer(line); said != "done") throw Error(unexpected(said, line));
    }
    std::string answer(const std::string& line) {
        child_->tell(line);
        if (const auto said = child_->answer()) return *said;
        throw Error(unexpected("nothing, it has ended", line));
    }

private:
    std::string unexpected(const std::string& said, const std::string& line) const {
        return "[bench] " + name_ + " answered '" + said + "' to '" + line + "'";
    }
    static std::unique_ptr<Child> started(const std::string& script, int threads) {
        const Pinned pinned(threads);
        return std::make_unique<Child>(std::vector<std::string>{
            python, "-B", std::string(TALLY_BENCH_PEERS) + "/" + script, std::to_string(threads)});
    }

    std::string name_, version_;
    std::unique_ptr<Child> child_;
};

// Returns the framework's process for a number of threads, and starts the process at the first call.
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

std::string in_json(const std::vector<std::int64_t>& shape) {
    std::string list;
    for (const std::int64_t extent : shape) list += (list.empty() ? "" : ", ") + std::to_string(extent);
    return "[" + list + "]";
}

void write_problem(const fs::path& path, const Description& work) {
    std::ofstream file(path, std::ios::binary);
    file << R"({"rows": )" << work.rows << R"(, "micro": )" << work.micro << R"(, "rate": )" << work.rate
         << R"(, "labels": )"
         << in_json(work.labels.empty() ? std::vector<std::int64_t>{}
                                        : std::vector{static_cast<std::int64_t>(work.labels.size())})
         << R"(, "arrays": [)";
    for (std::size_t i = 0; i < work.arrays.size(); ++i)
        file << (i > 0 ? ", " : "") << in_json(work.arrays[i].shape);
    file << "]}\n";
    const auto write = [&](const auto& numbers) {
        file.write(reinterpret_cast<const char*>(numbers.data()),
                   static_cast<std::streamsize>(numbers.size() * sizeof numbers[0]));
    };
    for (const Description::Numbers& array : work.arrays) write(array.values);
    write(work.labels);
    if (!file.flush()) throw Error("[bench] cannot write " + path.string());
}

Numbers read_numbers(const fs::path& path, const std::vector<std::size_t>& sizes) {
    std::ifstream file(path, std::ios::binary);
    Numbers all;
    for (const std::size_t size : sizes) {
        std::vector<float> numbers(size);
        file.read(reinterpret_cast<char*>(numbers.data()),
                  static_cast<std::streamsize>(size * sizeof(float)));
        all.push_back(doubles(numbers));
    }
    if (!file) throw Error("[bench] " + path.string() + " is too short");
    return all;
}

// A `Work` is one benchmark of a framework. The destructor frees the benchmark's memory in the framework.
class Work {
public:
    Work(std::shared_ptr<Framework> framework, const Description& work)
        : framework_(std::move(framework)),
          answers_(work.answers),
          number_(" " + std::to_string(++last_number)) {
        const ScratchFile file;
        write_problem(file.path(), work);
        framework_->ask(work.kind + number_ + " " + file.path().string());
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    ~Work() {
        try {
            framework_->ask("forget" + number_);
        } catch (const Error&) {  // the process has ended
        }
    }
    void run(std::size_t times) { framework_->ask("run" + number_ + " " + std::to_string(times)); }
    double mebibytes() { return std::stod(framework_->answer("mebibytes" + number_)); }
    Numbers numbers() {
        const ScratchFile file;
        framework_->ask("numbers" + number_ + " " + file.path().string());
        return read_numbers(file.path(), answers_);
    }

private:
    static inline int last_number = 0;
    std::shared_ptr<Framework> framework_;
    std::vector<std::size_t> answers_;
    std::string number_;
};

}  // namespace

void use_frameworks(const std::string& folder) {
    python = folder + "/bin/python";
    if (::access(python.c_str(), X_OK) != 0)
        throw Error("[bench] cannot run " + python + "; to install JAX and PyTorch, run tools/bench-peers " +
                    folder);
}

std::vector<std::pair<std::string, bool>> frameworks() {
    std::vector<std::pair<std::string, bool>> all;
    for (const std::string name : {jax, pytorch}) {
        const std::string version = python.empty() ? "" : framework(name, 1)->version();
        all.emplace_back(version.empty() ? name : version, !version.empty());
    }
    return all;
}

Description description(const Mlp& mlp) {
    Description work{"mlp", mlp.rows, mlp.micro, mlp.rate};
    for (std::size_t i = 0; i < mlp.layers(); ++i) {
        work.arrays.push_back({{mlp.sizes[i], mlp.sizes[i + 1]}, mlp.weight(i)});
        work.arrays.push_back({{mlp.sizes[i + 1]}, mlp.bias(i)});
    }
    for (int twice = 0; twice < 2; ++twice)  // first gradients, then weights after an update
        for (std::size_t i = 0; i < 2 * mlp.layers(); ++i)
            work.answers.push_back(work.arrays[i].values.size());
    work.arrays.push_back({{mlp.rows, mlp.sizes[0]}, mlp.pictures()});
    work.labels = mlp.labels();
    return work;
}

Description description(const Deep& deep) {
    Description work{"deep", deep.batch, deep.rows};
    for (std::size_t i = 0; i < deep.layers; ++i) {
        work.arrays.push_back({{deep.width, deep.width}, deep.weight(i)});
        work.arrays.push_back({{deep.width}, deep.bias(i)});
    }
    for (const Description::Numbers& parameter : work.arrays) work.answers.push_back(parameter.values.size());
    work.arrays.push_back({{deep.batch, deep.width}, deep.data()});
    return work;
}

void add_framework(Row& row, const char* name, const Description& what, bool with_memory) {
    if (python.empty()) return;
    const auto& here = framework(name, row.threads);
    if (here->version().empty()) return;
    const auto work = std::make_shared<Work>(here, what);
    row.sides.push_back({name, Role::peer, [work] { work->run(1); }, [work] { return work->numbers(); }});
    row.sides.back().processor_time = here->processor_time();
    row.sides.back().many = [work](std::size_t times) { work->run(times); };
    if (with_memory) row.sides.back().mebibytes = work->mebibytes();
}

}  // namespace tally::bench
