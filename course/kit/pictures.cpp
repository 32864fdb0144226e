// Draws the pictures that have no scale: Shares, Scissors, Matrices, Runs and Lanes.
#include "course/kit/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "tally/base/text.hpp"
#include "tally/tools/diagram.hpp"

namespace tally::lesson {

namespace {
using detail::short_number;

constexpr int left = Sheet::margin + 16, line = 30;

std::string words_of(const Vector& numbers) { return detail::short_values(std::span<const double>(numbers)); }

// Returns the factor a / b if all components have the same factor, and std::nullopt otherwise.
std::optional<double> times(const Vector& a, const Vector& b) {
    std::optional<double> factor;
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (std::abs(b[i]) > largest) largest = std::abs(b[i]), factor = a[i] / b[i];
    for (std::size_t i = 0; factor && i < a.size(); ++i)
        if (std::abs(a[i] - *factor * b[i]) > 0.001 * largest) return {};
    return factor;
}

std::string compared(const Vector& sum, const Vector& full) {
    const auto factor = times(sum, full);
    return factor ? fmt::format("{:.2f} times the full batch's", *factor) : "not the full batch's";
}

// Draws a batch's rows, weights and mean gradient. draw() returns the y coordinate of the lower edge.
struct Lane {
    Sheet& sheet;
    int weight_at, gradient_at, right;

    int draw(int y, const std::string& name, std::span<const Vector> rows, std::size_t first,
             const std::string& weight, const Vector& gradient) const {
        const int height = 40 + line * static_cast<int>(rows.size()) + 12;
        sheet.box(Sheet::margin, y, right - Sheet::margin, height);
        sheet.text(left, y + 28, name, "t-quiet");
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const int base = y + 40 + line * static_cast<int>(i) + 22;
            sheet.text(left, base, fmt::format("row {}  {}", first + i, words_of(rows[i])));
            sheet.text(weight_at, base, weight, "t-strong");
        }
        const int middle = y + 40 + line * static_cast<int>(rows.size()) / 2;
        sheet.arrow(gradient_at - 60, middle, gradient_at - 12, middle);
        sheet.text(gradient_at, middle + 6, words_of(gradient), "t-bad");
        return y + height;
    }
};

void scissors_at(Sheet& sheet, int x, int y, const std::string& style) {
    sheet.rule(x - 12, y - 16, x + 8, y + 16, style);
    sheet.rule(x + 12, y - 16, x - 8, y + 16, style);
    sheet.circle(x - 12, y + 22, 7, style);
    sheet.circle(x + 12, y + 22, 7, style);
}
}  // namespace

Sheet sheet_of(const std::string& title, const Shares& shares) {
    const std::size_t n = shares.parts.size(), all_rows = shares.rows.size();
    const auto weight = [&](std::size_t rows) {
        const std::string own = rows == 1 ? "1" : fmt::format("1/{}", rows);
        if (!shares.weighed.empty()) return fmt::format("{} x {}/{} = 1/{}", own, rows, all_rows, all_rows);
        if (!shares.divided.empty()) return fmt::format("{} / {} = 1/{}", own, n, rows * n);
        return own;
    };
    std::vector<std::pair<std::string, const Vector*>> results;
    if (!shares.sum.empty()) results.emplace_back("added up, nothing divided:", &shares.sum);
    if (!shares.divided.empty())
        results.emplace_back(fmt::format("each divided by {}, then added up:", n), &shares.divided);
    if (!shares.weighed.empty())
        results.emplace_back("each by its share of the rows, then added up:", &shares.weighed);

    std::string told = fmt::format("In the full batch a row counts 1/{}.", all_rows);
    for (const auto& part : shares.parts)
        told += fmt::format(" In {} a row counts {}.", part.name, weight(part.rows));
    for (const auto& [name, sum] : results) told += " " + name + " " + compared(*sum, shares.full) + ".";
    Sheet sheet(title, told);
    int rows_wide = 0, weights_wide = drawing::width_of_words("1/64", "t-strong"),
        gradients_wide = drawing::width_of_words("gradient of its mean");
    for (std::size_t i = 0; i < shares.rows.size(); ++i)
        rows_wide = std::max(rows_wide,
                             drawing::width_of_words(fmt::format("row {}  {}", i, words_of(shares.rows[i]))));
    for (const auto& part : shares.parts) {
        weights_wide = std::max(weights_wide, drawing::width_of_words(weight(part.rows), "t-strong"));
        gradients_wide = std::max(gradients_wide, drawing::width_of_words(words_of(part.gradient)));
    }
    for (const Vector* all : {&shares.full, &shares.sum, &shares.divided, &shares.weighed})
        gradients_wide = std::max(gradients_wide, drawing::width_of_words(words_of(*all)));
    const int weight_at = left + rows_wide + 36, gradient_at = weight_at + weights_wide + 84;
    const Lane lane{sheet, weight_at, gradient_at, gradient_at + gradients_wide + 16};

    int y = sheet.top();
    sheet.text(weight_at, y, "counts", "t-quiet");
    sheet.text(gradient_at, y, "gradient of its mean", "t-quiet");
    y = lane.draw(y + 14, fmt::format("the full batch: one mean of {}", shares.rows.size()), shares.rows, 0,
                  fmt::format("1/{}", shares.rows.size()), shares.full);
    std::size_t first = 0;
    for (std::size_t k = 0; k < n; ++k) {
        const auto& part = shares.parts[k];
        y = lane.draw(y + (k == 0 ? 34 : 12),
                      fmt::format("micro-batch {}, {}: a mean of {}", k + 1, part.name, part.rows),
                      std::span(shares.rows).subspan(first, part.rows), first, weight(part.rows),
                      part.gradient);
        first += part.rows;
    }
    for (const auto& [name, sum] : results) {
        y += 42;
        sheet.text(gradient_at - 16, y, name, "t-end");
        sheet.text(gradient_at, y, words_of(*sum), "t-bad");
        y += line;
        sheet.text(gradient_at - 16, y, compared(*sum, shares.full), "t-strong t-end");
    }
    return sheet;
}

Sheet sheet_of(const std::string& title, const Scissors& scissors) {
    std::string told = "The gradient passes:";
    for (const auto& station : scissors.stations) told += " " + station + ";";
    const auto gives = [&](const Scissors::Cut& cut) {  // a wrong cut may give the same result as a right cut
        const bool lucky =
            !cut.right && std::any_of(scissors.cuts.begin(), scissors.cuts.end(), [&](const auto& other) {
                return other.right && other.gives == cut.gives;
            });
        return cut.gives + (lucky ? ", by luck" : "");
    };
    for (const auto& cut : scissors.cuts)
        told += fmt::format(" {}: {}, {};", cut.right ? "right" : "wrong", cut.words, gives(cut));
    told.back() = '.';
    Sheet sheet(title, told);
    std::vector<std::vector<std::size_t>> at(scissors.stations.size());
    for (std::size_t i = 0; i < scissors.cuts.size(); ++i) at.at(scissors.cuts[i].after).push_back(i);

    const int middle = sheet.top() + 84, high = 64;
    int x = Sheet::margin;
    for (std::size_t s = 0; s < scissors.stations.size(); ++s) {
        const int wide = drawing::width_of_words(scissors.stations[s]) + 28;
        sheet.box(x, middle - high / 2, wide, high);
        sheet.text(x + 14, middle + 6, scissors.stations[s]);
        x += wide;
        if (s + 1 == scissors.stations.size()) break;
        const int gap = 60 + 64 * static_cast<int>(at[s].size());
        sheet.arrow(x, middle, x + gap, middle);
        for (std::size_t i = 0; i < at[s].size(); ++i) {
            const bool right = scissors.cuts[at[s][i]].right;
            const int here = x + 56 + 64 * static_cast<int>(i);
            sheet.text(here, middle - 34, std::to_string(at[s][i] + 1),
                       right ? "t-strong t-middle t-good" : "t-strong t-middle t-bad");
            scissors_at(sheet, here, middle, right ? "s-good" : "s-bad");
        }
        x += gap;
    }
    int wide = 0;
    for (const auto& cut : scissors.cuts) wide = std::max(wide, drawing::width_of_words(cut.words));
    int y = middle + high / 2 + 60;
    for (std::size_t i = 0; i < scissors.cuts.size(); ++i, y += 38) {
        const auto& cut = scissors.cuts[i];
        const std::string style = cut.right ? "t-strong t-good" : "t-strong t-bad";
        sheet.text(left, y, fmt::format("{} {}", i + 1, cut.right ? "right" : "wrong"), style);
        sheet.text(left + 140, y, cut.words);
        sheet.text(left + 140 + wide + 40, y, gives(cut), cut.right ? "t-good" : "t-bad");
    }
    return sheet;
}

Sheet sheet_of(const std::string& title, const Matrices& matrices) {
    std::string told;
    for (const auto& one : matrices.all)
        told += fmt::format("{}{}: {} rows in blocks of {}, {}.", told.empty() ? "" : " ", one.name,
                            one.rows.size(), one.in_blocks_of, one.below);
    Sheet sheet(title, told);
    const int high = 56;
    int cell = 0, x = left;
    for (const auto& one : matrices.all)
        for (const auto& row : one.rows)
            for (const double number : row)
                cell = std::max(cell, drawing::width_of_words(short_number(number), "t-strong") + 20);
    int below = sheet.top(), head = sheet.top();
    for (const auto& one : matrices.all) {
        const int n = static_cast<int>(one.rows.size()), in = static_cast<int>(one.in_blocks_of);
        if (x > left && x + 40 + cell * n > Sheet::widest - Sheet::margin) x = left, head = below + 56;
        const int top = head + 60;
        sheet.text(x, head + 8, one.name, "t-strong");
        for (int i = 0; i < n; ++i) {
            sheet.text(x + 40 + cell * i + cell / 2, top - 10, fmt::format("u{}", i + 1), "t-quiet t-middle");
            sheet.text(x, top + high * i + 34, fmt::format("z{}", i + 1), "t-quiet");
            for (int j = 0; j < n; ++j) {
                const bool seen = i / in == j / in;
                sheet.box(x + 40 + cell * j, top + high * i, cell, high,
                          !seen    ? "s-blank"
                          : i == j ? "s-own"
                                   : "s-cell",
                          0);
                if (seen)
                    sheet.text(
                        x + 40 + cell * j + cell / 2, top + high * i + 34,
                        short_number(one.rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]),
                        i == j ? "t-middle t-strong" : "t-middle");
            }
        }
        below = top + high * n + 40;
        const int end = sheet.text(x + 40, below, one.below);
        x = std::max({x + 40 + cell * n, end, x + drawing::width_of_words(one.name, "t-strong")}) + 56;
    }
    sheet.box(left, below + 26, 44, 26, "s-own", 0);
    sheet.text(left + 56, below + 45, "its own pair");
    sheet.box(left + 240, below + 26, 44, 26, "s-blank", 0);
    sheet.text(left + 296, below + 45, "never compared");
    return sheet;
}

std::vector<Runs::Kept> Runs::kept() const {
    std::vector<Kept> all;
    std::map<std::size_t, std::size_t> ended, place;  // when a step's input was last computed; its bar
    for (std::size_t time = 0; time < begun.size(); ++time) {
        const std::size_t step = begun[time];
        const bool goes_on = time > 0 && begun[time - 1] + 1 == step;
        if (!goes_on) {
            const std::size_t from = step == 0 ? 0 : ended[step];
            const auto known = place.find(step);
            if (known != place.end() && all[known->second].from == from)
                all[known->second].until = time;
            else
                place[step] = all.size(), all.push_back({step, from, time});
        }
        ended[step + 1] = time + 1;
    }
    return all;
}

std::size_t Runs::kept_at_most() const {
    std::size_t most = 0;
    const auto bars = kept();
    for (std::size_t time = 0; time < begun.size(); ++time) {
        most = std::max(
            most, static_cast<std::size_t>(std::count_if(bars.begin(), bars.end(), [&](const Kept& bar) {
                return bar.from <= time && time <= bar.until;
            })));
    }
    return most;
}

Sheet sheet_of(const std::string& title, const Runs& runs) {
    std::string told = "Time goes to the right, the steps upwards. Begun, in order:";
    for (const std::size_t step : runs.begun) told += " " + std::to_string(step + 1);
    const std::size_t most = runs.kept_at_most();
    Sheet sheet(title, told + fmt::format(". At most {} inputs are kept at once.", most));
    const std::size_t steps =
        runs.begun.empty() ? 0 : 1 + *std::max_element(runs.begun.begin(), runs.begun.end());
    const int pitch = std::clamp(1240 / std::max(1, static_cast<int>(runs.begun.size())), 8, 40);
    const int radius = std::min(11, pitch / 2 - 1), high = 38, x0 = left + 70;
    const auto x = [&](std::size_t time) { return x0 + pitch * static_cast<int>(time); };
    const auto y = [&](std::size_t step) {
        return sheet.top() + 20 + high * static_cast<int>(steps - 1 - step);
    };
    for (std::size_t step = 0; step < steps; ++step)
        sheet.text(left + 36, y(step) + 6, std::to_string(step + 1), "t-end");
    for (const auto& bar : runs.kept())
        sheet.box(x(bar.from) - pitch / 2, y(bar.input) + 12, x(bar.until) - x(bar.from) + pitch, 7, "s-kept",
                  3);
    for (std::size_t time = 0; time < runs.begun.size(); ++time)
        sheet.circle(x(time), y(runs.begun[time]) - 3, radius, runs.recorded[time] ? "s-two" : "s-ring");
    const int below = y(0) + 64;
    sheet.circle(left + 12, below - 6, 10, "s-ring");
    sheet.text(left + 34, below, "only run");
    sheet.circle(left + 162, below - 6, 10, "s-two");
    sheet.text(left + 184, below, "recorded, and gone back through");
    sheet.box(left + 550, below - 9, 44, 7, "s-kept", 3);
    sheet.text(left + 606, below, fmt::format("its input is kept; {} at once", most));
    return sheet;
}

Sheet sheet_of(const std::string& title, const Lanes& all) {
    constexpr int high = 36, gap = 12;
    constexpr std::size_t most_labels = 72;  // if there are more labels, they do not fit and none is drawn
    const char* const styles[] = {"s-own", "s-kept", "s-two"};
    std::string told = "Time goes to the right.";
    double ends = 0;
    int names = 0, last = 0;
    std::size_t labels = 0;
    for (const auto& lane : all.lanes) {
        told += fmt::format(" {}: {} pieces of work, {}.", lane.name, lane.work.size(), lane.end);
        names = std::max(names, drawing::width_of_words(lane.name));
        last = std::max(last, drawing::width_of_words(lane.end));
        for (const auto& work : lane.work)
            ends = std::max(ends, work.until), labels += work.label.empty() ? 0 : 1;
    }
    Sheet sheet(title, told);
    const int x0 = left + names + 16;
    const double unit = std::min(40.0, (Sheet::widest - Sheet::margin - x0 - 16 - last) / ends);
    const auto x = [&](double time) { return x0 + static_cast<int>(std::lround(time * unit)); };
    int y = sheet.top() + 10;
    for (const auto& lane : all.lanes) {
        sheet.text(left, y + 25, lane.name);
        for (std::size_t kind = 0; kind < all.kinds.size(); ++kind) {
            std::string boxes;
            for (const auto& work : lane.work)
                if (work.kind == kind)
                    boxes += fmt::format("M{},{}H{}V{}H{}Z", x(work.from), y, x(work.until), y + high,
                                         x(work.from));
            if (!boxes.empty()) sheet.path(boxes, styles[kind], {x0, y, x(ends), y + high, {}});
        }
        for (const auto& work : lane.work)
            if (!work.label.empty() && labels <= most_labels)
                sheet.text((x(work.from) + x(work.until)) / 2, y + 25, work.label, "t-middle");
        sheet.text(x(ends) + 16, y + 25, lane.end);
        y += high + gap;
    }
    int at = x0;
    for (std::size_t kind = 0; kind < all.kinds.size(); ++kind) {
        sheet.box(at, y + 12, 30, 22, styles[kind], 0);
        at = sheet.text(at + 42, y + 30, all.kinds[kind]) + 40;
    }
    return sheet;
}

}  // namespace tally::lesson
