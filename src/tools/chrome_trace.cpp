// Profile::chrome_trace() returns JSON in the trace event format of Chrome and Perfetto, in microseconds.
#include "tally/base/text.hpp"
#include "tally/base/write_file.hpp"
#include "tally/tools/profile.hpp"

namespace tally {
namespace {

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : detail::clean_text(text, 200)) {
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return result + '"';
}

std::string microseconds(std::uint64_t nanoseconds) {  // with all digits, independent of the locale
    const std::string digits = std::to_string(nanoseconds % 1000 + 1000);
    return std::to_string(nanoseconds / 1000) + "." + digits.substr(1);
}

}  // namespace

std::string Profile::chrome_trace() const {
    const std::string who = "\"pid\": 1, \"tid\": 1";
    std::string json =
        "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"events_left_out\": " + std::to_string(left_out_) +
        "},\n\"traceEvents\": [\n" + "{\"ph\": \"M\", \"name\": \"process_name\", " + who +
        ", \"args\": {\"name\": \"tally\"}}";
    for (const Event& event : events_) {
        const Row& row = rows_[event.row];
        const std::string begin = microseconds(event.begin - begin_), end = microseconds(event.end - begin_);
        json += ",\n{\"ph\": \"X\", \"name\": " + quoted(row.name) + ", \"cat\": \"" +
                (row.marked      ? "program"
                 : event.forward ? "forward"
                                 : "backward") +
                "\", " + who + ", \"ts\": " + begin + ", \"dur\": " + microseconds(event.end - event.begin) +
                ", \"args\": {";
        if (!event.where.empty()) json += "\"where\": " + quoted(event.where);
        if (event.forward && !row.marked)
            json += std::string(event.where.empty() ? "" : ", ") +
                    "\"shape\": " + quoted(to_string(event.shape)) +
                    ", \"made\": " + std::to_string(event.made) + ", \"kept\": " + std::to_string(event.kept);
        json +=
            "}},\n{\"ph\": \"C\", \"name\": \"live bytes\", " + who + ", \"ts\": " + end + ", \"args\": {";
        constexpr const char* names[] = {"parameters", "gradients", "saved", "temporary"};
        for (std::size_t row_of_ledger = 0; row_of_ledger < memory::detail::memory_classes; ++row_of_ledger)
            json += std::string(row_of_ledger ? ", \"" : "\"") + names[row_of_ledger] +
                    "\": " + std::to_string(event.in_use_by[row_of_ledger]);
        json += "}}";
    }
    return json + "\n]}\n";
}

void Profile::write_chrome_trace(const std::string& path) const {
    write_file_atomically(path, chrome_trace());
}

}  // namespace tally
