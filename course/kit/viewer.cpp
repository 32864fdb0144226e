// Renders events without waiting, as text or as lines of JSON.
#include "course/kit/viewer.hpp"

#include <unistd.h>

#include <utility>

#include "course/kit/files.hpp"
#include "course/kit/json.hpp"
#include "course/kit/step_viewer.hpp"
#include "course/kit/terminal.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
class JsonViewer : public Viewer {
public:
    JsonViewer(const Lesson& lesson, int digits) : lesson_(lesson), digits_(digits) {}
    void show(const Event& event) override {
        write_to(STDOUT_FILENO, json_line(event, lesson_, digits_) + "\n");
    }
    void progress(const ProgressMade& made, bool another_tenth) override {
        if (another_tenth) show({made.step, made});
    }

private:
    const Lesson& lesson_;
    int digits_;
};

bool begins_a_paragraph(const Event& event) {
    const auto* sentence = std::get_if<Sentence>(&event.is);
    return (sentence != nullptr && sentence->role == Sentence::Role::step) ||
           std::holds_alternative<Prediction>(event.is) || std::holds_alternative<End>(event.is);
}
}  // namespace

Style TextViewer::style() const {
    Style style = mode_.style;
    if (!width_is_fixed_) style.width = text_width();  // the window may have changed
    return style;
}

void TextViewer::write(std::string_view text) { write_to(STDOUT_FILENO, text); }

void TextViewer::write_lines(const std::vector<std::string>& lines) {
    clear_bar();
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    write(text);
}

void TextViewer::show(const Event& event) {
    const auto lines = lines_of(event, lesson_, style());
    if (lines.empty()) return;
    const bool spread = mode_.presents && !std::holds_alternative<Title>(event.is) &&
                        !std::holds_alternative<Tensor>(event.is);
    clear_bar();
    if (begins_a_paragraph(event) || spread) write("\n");
    write_lines(lines);
}

void TextViewer::clear_bar() {
    if (std::exchange(bar_on_screen_, false)) write("\r" + std::string(style().width - 1, ' ') + "\r");
}

void TextViewer::progress(const ProgressMade& made, bool another_tenth) {
    constexpr double worth_a_bar = 0.3, worth_a_line = 1.0, between_bars = 0.1;  // seconds
    if (!mode_.rewrites) {
        if (another_tenth && made.seconds >= worth_a_line) show({made.step, made});
        return;
    }
    const bool finished = made.done >= made.total;
    auto narrow = style();
    --narrow.width;  // a line as wide as the window might be wrapped, and then could not be rewritten
    if (finished) {
        clear_bar();
    } else if (made.seconds >= worth_a_bar &&
               (!bar_on_screen_ || made.seconds - bar_drawn_at_ >= between_bars)) {
        write("\r" + padded(lines_of({made.step, made}, lesson_, narrow).front(), narrow.width));
        bar_on_screen_ = true;
        bar_drawn_at_ = made.seconds;
    }
}

std::unique_ptr<Viewer> make_viewer(const Lesson& lesson, const Flags& flags, const Mode& mode) {
    if (flags.quiet || !flags.graph.empty()) return std::make_unique<Viewer>();
    if (flags.json) return std::make_unique<JsonViewer>(lesson, flags.digits);
    const bool width_is_fixed = flags.width > 0;
    if (mode.waits) return std::make_unique<StepViewer>(lesson, mode, width_is_fixed);
    return std::make_unique<TextViewer>(lesson, mode, width_is_fixed);
}

}  // namespace tally::lesson
