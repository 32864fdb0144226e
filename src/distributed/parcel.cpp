// send_parcel() splits bytes into pieces, because MPI counts bytes by an int.
#include "tally/distributed/parcel.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "tally/base/error.hpp"

namespace tally::detail {

namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 28;  // of one piece
const std::string label_prefix = "parcel ";

std::string make_label(const std::string& id, std::size_t bytes_left) {
    return label_prefix + std::to_string(bytes_left) + ' ' + id;
}

// Waits for the next label, sets `sent_id`, and returns the number of bytes in this piece and all later ones.
std::size_t next_piece(ProcessGroup& processes, int from, const std::string& id, std::string& sent_id) {
    const std::string sender = "rank " + std::to_string(from);
    std::optional<std::string> label;
    processes.wait_or_fail(id, "", "nothing arrived from " + sender, [&] {
        label = processes.transport().poll_label(from);
        return label.has_value();
    });
    require(label->starts_with(label_prefix), "processes", id, ": ", sender,
            " has sent an array of a pipe; make the same calls in the same order on all processes");
    const std::size_t space = label->find(' ', label_prefix.size());
    sent_id = label->substr(space + 1);
    return std::stoull(label->substr(label_prefix.size(), space - label_prefix.size()));
}

}  // namespace

void send_parcel(ProcessGroup& processes, int to, const std::string& id, std::string bytes) {
    const auto owner = std::make_shared<std::string>(std::move(bytes));
    for (std::size_t at = 0; at == 0 || at < owner->size(); at += max_bytes) {
        const std::size_t left = owner->size() - at;
        processes.post(make_label(id, left), {to, owner->data() + at, std::min(left, max_bytes)}, owner);
    }
}

std::string receive_parcel(ProcessGroup& processes, int from, const std::string& id) {
    // This heap memory is not freed after an error, because MPI may still write to it.
    auto bytes = std::make_unique<std::string>();
    for (std::size_t at = 0;;) {
        std::string sent_id;
        const std::size_t left = next_piece(processes, from, id, sent_id), size = std::min(left, max_bytes);
        if (at == 0) bytes->resize(left);
        try {
            processes.take(id, {from, bytes->data() + at, size});
        } catch (...) {
            (void)bytes.release();
            throw;
        }
        if (sent_id != id) continue;  // a piece of an earlier call that failed
        at += size;
        if (left == size) return std::move(*bytes);
    }
}

}  // namespace tally::detail
