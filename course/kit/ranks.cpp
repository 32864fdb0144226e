// Starts the processes (ranks) of a lesson and reads their results.
#include "course/kit/ranks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "course/kit/text.hpp"
#include "tally/base/error.hpp"

namespace tally::lesson {

namespace {
struct LineResults {
    std::size_t line;  // line of on_ranks() in the lesson's source
    std::vector<std::string> results;
};
std::deque<LineResults> unread_results;  // results that the lesson has not read yet
std::string ranks_error;                 // the error with which the ranks ended; empty if there was none
std::ofstream results_file;              // only ranks open this file

// Configures Open MPI for one machine with fewer cores than processes: waiting processes yield. Allows root to
// run Open MPI, as containers need. Does not change environment variables that are already set.
void set_up_open_mpi() {
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
             {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
             {"OMPI_MCA_hwloc_base_binding_policy", "none"},
             {"OMPI_MCA_mpi_yield_when_idle", "1"},
             {"OMPI_MCA_btl", "self,vader,tcp"},
             {"OMPI_MCA_btl_tcp_if_include", "lo"},
             {"OMPI_MCA_oob_tcp_if_include", "lo"},
             {"OPENBLAS_NUM_THREADS", "1"}})
        ::setenv(name, value, 0);
}

std::string launcher() {
    const char* const named = std::getenv("TALLY_MPIEXEC");
    return named == nullptr ? TALLY_MPIEXEC : named;
}

std::string to_hex(const std::string& bytes) {
    std::string digits = ".";  // so that an empty string is not lost between the blanks of the file
    for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return digits;
}
std::string from_hex(const std::string& digits) {
    std::string bytes;
    for (std::size_t at = 1; at + 1 < digits.size(); at += 2)
        bytes += static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16));
    return bytes;
}

void read_results(const std::string& file) {
    std::ifstream in(file);
    for (std::string text; std::getline(in, text) && !in.eof();) {  // ignores an incomplete last line
        std::istringstream words(text);
        LineResults line_results;
        words >> line_results.line;
        for (std::string word; words >> word;) line_results.results.push_back(from_hex(word));
        unread_results.push_back(std::move(line_results));
    }
}

// Returns the first error that any rank printed, or else the launcher's output without lines of dashes.
std::string complaint_in(const std::string& output) {
    std::istringstream lines(output);
    std::string all;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("lesson ")) return line;
        if (line.find_first_not_of("- ") != std::string::npos) all += (all.empty() ? "" : " ") + line;
    }
    return all;
}

volatile std::sig_atomic_t launched = 0;      // the process of the launcher
volatile std::sig_atomic_t asked_to_end = 0;  // the signal that this program has not obeyed yet, or 0

void end_launcher_first(int signal) {
    asked_to_end = signal;
    if (launched > 0) ::kill(static_cast<pid_t>(launched), SIGTERM);
}

// While it exists, signals that would end this program end the launcher first, so that no rank and no file is left.
class EndsLauncherFirst {
public:
    EndsLauncherFirst() {
        struct sigaction action {};
        action.sa_handler = end_launcher_first;
        for (std::size_t i = 0; i < signals.size(); ++i) {
            ::sigaction(signals[i], nullptr, &before_[i]);
            if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
        }
    }
    ~EndsLauncherFirst() {
        launched = 0;
        for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
    }
    EndsLauncherFirst(const EndsLauncherFirst&) = delete;
    EndsLauncherFirst& operator=(const EndsLauncherFirst&) = delete;

private:
    static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, signals.size()> before_{};
};

// Runs a command without standard input, and returns how the command ended and what it printed. The command also ends if this
// program is killed (Linux only).
std::pair<int, std::string> run_and_read(const std::vector<std::string>& command) {
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    const EndsLauncherFirst handlers;
    const pid_t pid = ::fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
#ifdef __linux__
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
        ::signal(SIGPIPE, SIG_DFL);
        ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
        for (const int output : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(ends[1], output);
        for (const int end : ends) ::close(end);
        ::execv(words[0], words.data());
        ::_exit(127);
    }
    launched = pid;
    if (asked_to_end != 0) ::kill(pid, SIGTERM);  // a signal came before the process was known
    ::close(ends[1]);
    std::string printed;
    std::array<char, 4096> buffer;
    for (ssize_t size = 0; (size = ::read(ends[0], buffer.data(), buffer.size())) != 0;) {
        if (size > 0) printed.append(buffer.data(), static_cast<std::size_t>(size));
        if (size < 0 && errno != EINTR) break;
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return {status, std::move(printed)};
}

struct Scratch {
    std::string path = (std::filesystem::temp_directory_path() / "tally-ranks-XXXXXX").string();
    Scratch() {
        const int descriptor = ::mkstemp(path.data());
        if (descriptor < 0) throw std::runtime_error("cannot write a file in " + path);
        ::close(descriptor);
    }
    ~Scratch() { std::filesystem::remove(path, ignored); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::error_code ignored;
};
}  // namespace

bool on_several_ranks(const Lesson& lesson) {
    return std::any_of(lesson.parameters.begin(), lesson.parameters.end(),
                       [](const LessonParameter& parameter) { return parameter.name == "ranks"; });
}

std::string why_no_launcher() {
    const std::string program = launcher();
    if (program.empty())
        return "it runs on several processes, and tally was built without an MPI to start them (Debian: "
               "libopenmpi-dev openmpi-bin; then configure again)";
    if (::access(program.c_str(), X_OK) != 0)
        return fmt::format("it runs on several processes, and {}, which would start them, cannot be run",
                           program);
    return "";
}

void run_ranks(int ranks, std::vector<std::string> command) {
    set_up_open_mpi();
    std::pair<int, std::string> ended;
    {
        const Scratch file;
        std::vector<std::string> words{launcher(), TALLY_MPIEXEC_NUMBER, std::to_string(ranks)};
        words.insert(words.end(), command.begin(), command.end());
        words.push_back("--rank-says=" + file.path);
        ended = run_and_read(words);
        read_results(file.path);
    }
    if (asked_to_end != 0) ::raise(asked_to_end);
    const auto& [status, printed] = ended;
    if (status == 0) return;
    const std::string complaint = complaint_in(printed);
    ranks_error = fmt::format("{} ended with {}{}{}", launcher(),
                              WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                                  : fmt::format("exit code {}", WEXITSTATUS(status)),
                              complaint.empty() ? "" : ": ", complaint);
}

void become_rank(const std::string& file) {
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // this rank ends when the launcher ends
#endif
    results_file.open(file, std::ios::app);
    if (!results_file) throw std::runtime_error("cannot write " + file);
}

bool is_rank() { return results_file.is_open(); }

void write_results(std::size_t line, const std::vector<std::string>& results_by_rank) {
    results_file << line;
    for (const auto& words : results_by_rank) results_file << ' ' << to_hex(words);
    results_file << std::endl;
    if (!results_file) throw std::runtime_error("cannot write the results of the ranks");
}

std::vector<std::string> take_results(std::size_t line) {
    if (unread_results.empty())
        throw Error("[ranks] " +
                    (ranks_error.empty() ? "the ranks have no result for this line" : ranks_error));
    const LineResults line_results = std::move(unread_results.front());
    unread_results.pop_front();
    if (line_results.line != line)
        throw std::logic_error(fmt::format(
            "[on_ranks] the ranks reached line {}, and the lesson reached line {}", line_results.line, line));
    return line_results.results;
}

void require_ranks_done() {
    if (!ranks_error.empty()) throw Error("[ranks] " + ranks_error);
    if (!unread_results.empty())
        throw std::logic_error(fmt::format("[on_ranks] the lesson did not reach line {}, but the ranks did",
                                           unread_results.front().line));
}

}  // namespace tally::lesson
