// send_parcel() splits bytes into pieces, because MPI counts bytes by an int.
#include "tally/distributed/send_bytes.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

constexpr std::size_t most = std::size_t{1} << 28;  // bytes of one piece
const std::string mark = "parcel ";

std::string label(const std::string& what, std::size_t left) {
    return mark + std::to_string(left) + ' ' + what;
}

// Waits for the next label, sets `name`, and returns the number of bytes from this piece to the parcel's end.
std::size_t next_piece(ProcessGroup& processes, int from, const std::string& what, std::string& name) {
    const std::string sender = "rank " + std::to_string(from);
    std::optional<std::string> said;
    processes.wait_or_fail(what, "", "nothing arrived from " + sender, [&] {
        said = processes.wire().poll_label(from);
        return said.has_value();
    });
    require(said->starts_with(mark), "processes", what, ": ", sender, " has sent ", *said,
            " instead; make the same calls in the same order on all processes");
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
    // Allocated on the heap: after an error MPI may still write here, so the memory must not be freed.
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
        if (name != what) continue;  // a piece of an earlier call that failed
        at += size;
        if (left == size) return std::move(*bytes);
    }
}

}  // namespace tally::detail
