// Converts events to lines of text.
#include "course/kit/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "course/kit/chart.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
constexpr std::size_t indent = 7;        // as wide as " [3/6] "
constexpr std::size_t widest_name = 14;  // values after names of at most this width begin in the same column

using Lines = std::vector<std::string>;

Lines indented(Lines lines, std::size_t by) {
    for (auto& line : lines) line.insert(0, by, ' ');
    return lines;
}

void append(Lines& lines, Lines more) { lines.insert(lines.end(), more.begin(), more.end()); }

class Layout {
public:
    Layout(const Lesson& lesson, const Style& style, int step)
        : lesson_(lesson), style_(style), step_(step), in_(style.width < 50 ? 2 : indent) {}

    Lines operator()(const Title& title) const {
        const std::string name = fmt::format("== Lesson {}: {} ", lesson_.number, said(lesson_.title));
        const std::string setting = fmt::format(" {}  seed {}{}{} ==", title.device, title.seed,
                                                title.settings.empty() ? "" : "  ", title.settings);
        const std::size_t used = width_of(name) + width_of(setting);
        Lines lines;
        if (used + 2 <= style_.width) {
            lines.push_back(name + std::string(style_.width - used, '=') + setting);
        } else {
            for (const auto& line : wrapped(name + "==", style_.width, 3)) lines.push_back(line);
            append(lines, wrapped(setting.substr(1, setting.size() - 4), style_.width));
        }
        for (auto& line : lines) line = painted(line, Tone::bold, style_);
        if (title.device == "simulated")
            append(lines, wrapped("A simulated device: the host computes what a GPU would.", style_.width));
        return lines;
    }

    Lines operator()(const Sentence& sentence) const {
        if (sentence.role == Sentence::Role::note) return body(sentence.text);
        return led(fmt::format(" [{}/{}] ", step_, lesson_.steps), Tone::bold, said(sentence.text));
    }

    Lines operator()(const Source& source) const {
        Lines lines = wrapped(fmt::format("{}:{}", source.file, source.line), line_width());
        for (const auto& code : source.lines) append(lines, wrapped("  " + said(code), line_width(), 6));
        for (auto& line : lines) line = painted(line, Tone::source, style_);
        return indented(lines, in_);
    }

    Lines operator()(const Tensor& tensor) const {
        std::string name = said(tensor.name);
        const auto& value = tensor.value;
        const std::size_t common = std::max(widest_name, std::min(tensor.name_width, line_width() / 2));
        if (value.is_words)
            return indented(wrapped(padded(name, common + 2) + "  " + said(value.words), line_width(), 2),
                            in_);
        if (value.numbers.shape.size() > 1) name += " " + shape_text(value.numbers.shape);
        Lines rows = tally::lesson::lines_of(value.numbers, style_.digits);
        std::size_t widest = 0;
        for (const auto& row : rows) widest = std::max(widest, row.size());
        const std::size_t column = std::max(width_of(name), common) + 2;
        if (column + widest <= line_width()) {
            for (std::size_t i = 0; i < rows.size(); ++i) {
                // A single number is indented by one column, because a vector begins with a bracket.
                const bool bare = value.numbers.shape.empty();
                rows[i] = padded(i == 0 ? name : "", column) + (bare && !value.numbers.missing ? " " : "") +
                          rows[i];
            }
            return indented(rows, in_);
        }
        Lines lines = wrapped(name, line_width());
        for (const auto& row : rows) append(lines, wrapped("  " + row, line_width(), 3));
        return indented(lines, in_);
    }

    Lines operator()(const TableShown& table) const;

    Lines operator()(const Prediction& prediction) const {
        Lines lines = led(fmt::format(" [{}/{}] ", step_, lesson_.steps), Tone::bold,
                          "PREDICT  " + said(prediction.question));
        if (prediction.is_typed) {
            append(lines,
                   body(prediction.within == 0
                            ? "type a number"
                            : fmt::format("type a number; {} more or less is accepted", prediction.within)));
            return lines;
        }
        Lines options;
        std::size_t together = 0, widest = 0;
        for (std::size_t i = 0; i < prediction.options.size(); ++i) {
            options.push_back(named(prediction, i));
            together += width_of(options.back()) + 4;
            widest = std::max(widest, width_of(options.back()));
        }
        if (together <= line_width() + 4) {
            lines.push_back(std::string(in_, ' ') + joined(options, "    "));
        } else if (2 * widest + 4 <= line_width()) {
            for (std::size_t i = 0; i < options.size(); i += 2) {
                const bool two = i + 1 < options.size();
                lines.push_back(std::string(in_, ' ') +
                                (two ? padded(options[i], widest + 4) + options[i + 1] : options[i]));
            }
        } else {
            for (const auto& option : options) append(lines, indented(wrapped(option, line_width(), 3), in_));
        }
        return lines;
    }

    Lines operator()(const Reveal& reveal) const {
        const auto& prediction = reveal.prediction;
        const bool right = !reveal.tries.empty() && prediction.is_right(reveal.tries.back());
        // The step viewer has already printed the reply to the first wrong answer.
        const bool wrong = !right && reveal.tries.size() == prediction.tries();
        Lines lines;
        if (wrong) lines = reply(prediction, reveal.tries.back());
        std::string text =
            fmt::format("{} {}.", right ? "Right:" : "Answer:", named(prediction, prediction.answer));
        if (!prediction.why.empty()) text += "  " + said(prediction.why);
        for (const auto& line : indented(wrapped(text, line_width(), 2), in_))
            lines.push_back(right ? painted(line, Tone::good, style_) : line);
        return lines;
    }

    Lines reply(const Prediction& prediction, const Try& wrong) const {
        const std::string what =
            wrong.choice && !prediction.is_typed ? named(prediction, *wrong.choice) : wrong.typed;
        Lines lines = wrapped(fmt::format("Not quite: {}.  {}", what, said(reply_to(prediction, wrong))),
                              line_width(), 2);
        for (auto& line : lines) line = painted(line, Tone::warn, style_);
        return indented(lines, in_);
    }

    Lines operator()(const Check& check) const {
        const std::string mark = check.ok ? "[ok]" : "[FAIL]";
        Lines pieces{mark + " " + said(check.name)};
        const auto yes_no = [](bool yes) { return yes ? "yes" : "no"; };
        if (check.exact) pieces.push_back(fmt::format("exact {}", yes_no(*check.exact)));
        if (check.close) pieces.push_back(fmt::format("close {}", yes_no(*check.close)));
        if (check.max_diff) pieces.push_back(fmt::format("max|diff| {}", short_text(*check.max_diff)));
        if (check.bound) pieces.push_back(fmt::format("bound {}", short_text(*check.bound)));
        Lines lines = wrapped(pieces, "   ", line_width(), 5);
        if (!check.detail.empty()) append(lines, indented(wrapped(said(check.detail), line_width() - 5), 5));
        if (!check.ok)
            append(lines,
                   indented(wrapped(fmt::format("{}:{}", check.file, check.line), line_width() - 5), 5));
        lines.front() =
            painted(mark, check.ok ? Tone::good : Tone::bad, style_) + lines.front().substr(mark.size());
        return indented(lines, in_);
    }

    Lines operator()(const Graph& graph) const {
        Lines lines = body(fmt::format("graph: {}", graph.name));
        for (std::string_view remaining = graph.text; !remaining.empty();) {
            const std::size_t end = std::min(remaining.find('\n'), remaining.size());
            append(lines, indented(wrapped(said(remaining.substr(0, end)), line_width()), in_));
            remaining.remove_prefix(std::min(end + 1, remaining.size()));
        }
        return lines;
    }

    Lines operator()(const Plot& plot) const {
        Lines lines = body(plot.name);
        for (const auto& line : chart_lines(plot, line_width(), style_.ascii))
            lines.push_back(std::string(in_, ' ') + said(line));
        return lines;
    }

    Lines operator()(const ProgressMade& progress) const {
        return body(fmt::format("{} % ({} of {}): {}",
                                progress.done * 100 / std::max<std::int64_t>(progress.total, 1),
                                progress.done, progress.total, progress.name));
    }

    Lines operator()(const End& end) const {
        if (end.outcome == Outcome::quit && end.steps < 2) return {};  // too early to resume
        if (end.outcome == Outcome::quit)
            return wrapped("       go on: " + command(end, end.steps), style_.width, indent);
        const std::string mark = fmt::format("[{}]", to_string(end.outcome));
        std::string text =
            fmt::format(" {} lesson {}: {} steps, {} checks", mark, lesson_.slug, end.steps, end.checks);
        if (end.failed > 0) text += fmt::format(", {} failed", end.failed);
        if (!end.detail.empty()) text += ": " + said(end.detail);
        Lines lines = wrapped(text, style_.width, indent);
        if (end.outcome == Outcome::fail)
            append(lines, wrapped("       again: " + command(end, end.failed_step), style_.width, indent));
        const Tone tone = end.outcome == Outcome::ok     ? Tone::good
                          : end.outcome == Outcome::fail ? Tone::bad
                                                         : Tone::warn;
        for (auto& line : lines) line = painted(line, tone, style_);
        return lines;
    }

private:
    std::string command(const End& end, int from) const {
        const std::string command = fmt::format("./learn run {}{}", lesson_.slug, end.with);
        return from > 1 ? fmt::format("{} --from {}", command, from) : command;
    }
    std::size_t line_width() const { return style_.width - in_; }
    std::string said(std::string_view text) const {
        return style_.ascii ? to_ascii(text) : std::string(text);
    }
    // Returns text such as "3) three times", or only the text of the option for a typed number.
    std::string named(const Prediction& prediction, std::size_t option) const {
        const std::string text = said(prediction.options[option].text);
        return prediction.is_typed ? text : fmt::format("{}) {}", option + 1, text);
    }
    Lines body(std::string_view text) const { return indented(wrapped(said(text), line_width()), in_); }

    // Returns the lines of the text. The first line begins with `head`, and the other lines are indented.
    Lines led(const std::string& head, Tone tone, const std::string& text) const {
        const std::size_t lead = width_of(head);
        Lines lines = indented(wrapped(text, style_.width - lead), lead);
        lines.front() = painted(head, tone, style_) + lines.front().substr(lead);
        return lines;
    }

    const Lesson& lesson_;
    const Style& style_;
    int step_;
    std::size_t in_;
};

Lines Layout::operator()(const TableShown& table) const {
    struct Column {
        Lines cells;  // the heading first
        bool words = false;
        std::size_t width = 0;
    };
    std::vector<Column> columns;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
        Column column;
        column.cells.push_back(said(table.columns[c]));
        for (const auto& row : table.rows) {
            column.words = column.words || row[c].is_words;
            column.cells.push_back(row[c].is_words ? said(row[c].words)
                                                   : row_text(row[c].numbers, style_.digits));
        }
        for (const auto& cell : column.cells) column.width = std::max(column.width, width_of(cell));
        column.width = std::min(column.width, line_width());
        columns.push_back(std::move(column));
    }

    // A table wider than the screen is split into blocks of columns. Each block repeats the first column.
    Lines lines;
    std::size_t next = 0;
    while (next < columns.size()) {
        std::vector<const Column*> block;
        std::size_t used = 0;
        const auto take = [&](const Column& column) {
            block.push_back(&column);
            used += column.width + (block.size() > 1 ? 3 : 0);
        };
        if (next > 0) take(columns[0]);
        take(columns[next++]);
        while (next < columns.size() && used + 3 + columns[next].width <= line_width()) take(columns[next++]);
        const bool too_wide = used > line_width();
        for (std::size_t row = 0; row <= table.rows.size(); ++row) {
            Lines cells;
            for (const Column* column : block) {
                // Aligns words left and numbers right, and centres the headings of wide numbers.
                const std::string& cell = column->cells[row];
                const std::size_t spare = column->width - std::min(width_of(cell), column->width);
                const bool middle = row == 0 && column->width > 12;
                cells.push_back(too_wide        ? cell
                                : column->words ? padded(cell, column->width)
                                                : padded(std::string(middle ? spare / 2 : spare, ' ') + cell,
                                                         column->width));
            }
            std::string line = joined(cells, "   ");
            line.erase(line.find_last_not_of(' ') + 1);
            append(lines, wrapped(line, line_width(), 2));
        }
    }
    return indented(lines, in_);
}
}  // namespace

std::string painted(const std::string& text, Tone tone, const Style& style) {
    if (!style.colour) return text;
    constexpr const char* codes[] = {"1", "32", "1;31", "33", "1;36", "36"};
    return fmt::format("\033[{}m{}\033[0m", codes[static_cast<int>(tone)], text);
}

std::vector<std::string> lines_of(const Event& event, const Lesson& lesson, const Style& style) {
    return std::visit(Layout(lesson, style, event.step), event.is);
}

std::vector<std::string> reply_lines(const Prediction& prediction, const Try& wrong, const Lesson& lesson,
                                     const Style& style) {
    return Layout(lesson, style, 0).reply(prediction, wrong);
}

}  // namespace tally::lesson
