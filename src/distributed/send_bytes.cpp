// A parcel goes in pieces, since MPI counts bytes by an int; each piece says how much there is from it to the end.
#include "tally/distributed/send_bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

constexpr std::size_t most = std::size_t{1} << 28;  // in one piece
const std::string mark = "parcel ";

std::string label(const std::string& what, std::size_t left) {
    return mark + std::to_string(left) + ' ' + what;
}

// The next piece's name, and how much there is from it on.
std::size_t next_piece(ProcessGroup& processes, int from, const std::string& what, std::string& name) {
    const std::string sender = "rank " + std::to_string(from);
    std::optional<std::string> said;
    processes.wait_or_fail(what, "", "nothing has come from " + sender, [&] {
        said = processes.wire().label_of(from);
        return said.has_value();
    });
    if (!said->starts_with(mark)) throw Error("[processes] " + what + ": " + sender + " has sent " + *said);
    const std::size_t space = said->find(' ', mark.size());
    name = said->substr(space + 1);
    return std::stoull(said->substr(mark.size(), space - mark.size()));
}

}  // namespace

void send_parcel(ProcessGroup& processes, int to, const std::string& what, std::string bytes) {
    const auto kept = std::make_shared<std::string>(std::move(bytes));
    for (std::size_t at = 0; at == 0 || at < kept->size(); at += most) {
        const std::size_t left = kept->size() - at;
        processes.post(label(what, left), {to, kept->data() + at, std::min(left, most)}, kept);
    }
}

std::string receive_parcel(ProcessGroup& processes, int from, const std::string& what) {
    // On the heap: if somebody is lost, MPI may still write there.
    auto bytes = std::make_unique<std::string>();
    for (std::size_t at = 0;;) {
        std::string name;
        const std::size_t left = next_piece(processes, from, what, name), size = std::min(left, most);
        if (at == 0) bytes->resize(left);
        try {
            processes.take(what, {from, bytes->data() + at, size});
        } catch (...) {
            (void)bytes.release();
            throw;
        }
        if (name != what) continue;  // left by a call that has failed
        at += size;
        if (left == size) return std::move(*bytes);
    }
}

}  // namespace tally::detail
