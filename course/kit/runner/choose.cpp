// Finds a lesson or exercise by a number, a name or a part of a name.
#include "course/kit/runner/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "course/kit/text.hpp"

namespace tally::lesson {

std::optional<std::size_t> find_named(const std::vector<Named>& all, const std::string& which,
                                      std::string_view kind, std::string_view see, std::string& message) {
    int number = 0;
    const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), number);
    const bool is_number = error != std::errc::invalid_argument && end == which.data() + which.size();
    std::vector<std::size_t> begin_so, have_it;
    std::size_t nearest = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::string& slug = all[i].slug;
        if (is_number ? all[i].number == number : slug == which) return i;
        if (slug.rfind(which, 0) == 0) begin_so.push_back(i);
        if (slug.find(which) != std::string::npos) have_it.push_back(i);
        if (edit_distance(which, slug) < edit_distance(which, all[nearest].slug)) nearest = i;
    }
    if (is_number) {
        const auto [least, most] = std::minmax_element(
            all.begin(), all.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
        message =
            fmt::format("no {} {}; there are {} to {} ({})", kind, which, least->number, most->number, see);
        return std::nullopt;
    }
    const auto& candidates = begin_so.empty() ? have_it : begin_so;
    if (candidates.size() == 1) return candidates.front();
    if (candidates.empty() || which.empty()) {
        const bool near = 2 * edit_distance(which, all[nearest].slug) <= which.size();
        message = fmt::format("no {} '{}'{} ({})", kind, which,
                              near ? fmt::format("; the nearest is '{}'", all[nearest].slug) : "", see);
    } else {
        std::vector<std::string> names;
        for (const std::size_t i : candidates) names.push_back(all[i].slug);
        message = fmt::format("'{}' could be {} ({})", which, joined(names, ", "), see);
    }
    return std::nullopt;
}

}  // namespace tally::lesson
