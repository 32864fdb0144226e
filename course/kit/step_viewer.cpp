// Implements step mode.
#include "course/kit/step_viewer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "course/kit/files.hpp"
#include "course/kit/open_file.hpp"
#include "course/kit/page.hpp"
#include "course/kit/text.hpp"

namespace tally::lesson {

namespace {
template <class E> const E* last_of(const std::vector<Event>& events) {
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
        if (const auto* found = std::get_if<E>(&event->is)) return found;
    }
    return nullptr;
}

std::optional<Try> parse_try(const Prediction& prediction, const KeyPress& press, const std::string& typed) {
    if (prediction.is_typed)
        return press.key == Key::next && press.byte != ' ' ? parse_try(prediction, typed) : std::nullopt;
    const auto option = static_cast<std::size_t>(press.digit);
    if (press.key != Key::digit || option < 1 || option > prediction.options.size()) return std::nullopt;
    return Try{option - 1, {}};
}

std::string wanted_answer(const Prediction& prediction) {
    return prediction.is_typed ? "a number, ENTER" : fmt::format("1-{}", prediction.options.size());
}
}  // namespace

void StepViewer::say(const std::string& text) {
    const Style now = style();
    std::vector<std::string> lines = wrapped(now.ascii ? to_ascii(text) : text, now.width - 8, 2);
    for (auto& line : lines) line.insert(0, 7, ' ');
    write_lines(lines);
}

// Clears the screen at a new step with --present. The title and the first step share a screen.
void StepViewer::clear_screen_for(int step) {
    if (!mode().presents || step == on_page_) return;
    if (on_page_ != 0) write("\033[H\033[2J");
    on_page_ = step;
}

void StepViewer::show(const Event& event) {
    clear_screen_for(event.step);
    if (first_ == 0) first_ = event.step;
    if (std::holds_alternative<End>(event.is)) fold_checks();
    const auto* check = std::get_if<Check>(&event.is);
    if (check != nullptr && check->ok)
        ++unshown_;
    else
        TextViewer::show(event);
}

void StepViewer::fold_checks() {
    if (mode().presents) unshown_ = 0;  // with --present, checks are shown only on the key c
    if (unshown_ == 1) write_lines({painted("       [ok] 1 check holds (c shows it)", Tone::good, style())});
    if (unshown_ > 1)
        write_lines({painted(fmt::format("       [ok] {} checks hold (c shows them)", unshown_), Tone::good,
                             style())});
    unshown_ = 0;
}

void StepViewer::checks(const Place& place) {
    for (std::size_t step = place.at; step > 0; --step) {  // the last step that has checks
        bool shown = false;
        for (const Event& event : place.record.steps[step]) {
            if (!std::holds_alternative<Check>(event.is)) continue;
            if (!shown) say(fmt::format("Checks of step {}:", step));
            shown = true;
            TextViewer::show(event);
        }
        if (shown) return;
    }
    say("No check so far in this lesson.");
}

// Shows the page of the lesson in a pager, which restores the terminal mode that it found.
void StepViewer::show_page() {
    const char* pager = std::getenv("PAGER");
    const std::string page = page_to_read(lesson().page_path, style().width);
    const auto before = std::signal(SIGPIPE, SIG_IGN);  // a pager can end before it has read all
    std::FILE* pipe = popen(pager == nullptr || *pager == '\0' ? "less" : pager, "w");
    const bool written = pipe != nullptr && std::fputs(page.c_str(), pipe) >= 0;
    if (pipe == nullptr || pclose(pipe) != 0 || !written)
        say("The page of this lesson is " + lesson().page_path);
    std::signal(SIGPIPE, before);
}

void StepViewer::end_of_step(const Record& record) { wait(record, "next"); }
void StepViewer::end_of_lesson(const Record& record) { wait(record, "leave"); }

void StepViewer::wait(const Record& record, const char* next) {
    fold_checks();
    until_next(record, [&](const Place& live) { return bar(live, next); });
}

// Shows earlier steps on request. Calls wait_at_live() while the live step is on screen, until it returns Move::next.
void StepViewer::until_next(const Record& record, const std::function<Move(const Place&)>& wait_at_live) {
    Place place{record, record.steps.size() - 1};
    for (;;) {
        const bool is_live = place.at == place.live();
        const Move move = is_live ? wait_at_live(place) : bar(place, "next");
        if (is_live && move == Move::next) return;
        const std::size_t before = place.at;
        go(place, move);
        if (place.at != before) present(place);
    }
}

// Lists the keys below a step, and waits until the user presses a key that leaves the step.
StepViewer::Move StepViewer::bar(const Place& place, const char* next) {
    for (bool resumed = false;;) {
        const std::size_t width = style().width;
        std::string line = fmt::format(" SPACE {}  b back  g graph  m page  ? keys  q quit", next);
        if (line.size() >= width) line = fmt::format(" SPACE {}  b g m ? q", next);
        if (line.size() >= width) line = " SPACE";
        // Discards earlier key presses, unless the program has just continued after Ctrl-Z.
        if (!resumed) forget_typed_ahead();
        write(line);
        const KeyPress press = read_key();
        resumed = press.key == Key::resumed;
        // Overwrites the line with blanks, because a terminal may not support escape sequences.
        write("\r" + std::string(line.size(), ' ') + "\r");
        if (press.key == Key::next || press.key == Key::page_down) return Move::next;
        if (press.key == Key::back) return Move::back;
        if (press.key == Key::checks) checks(place);
        if (press.key == Key::keys)
            say("SPACE, ENTER, page down or the right arrow: next. b, page up or the left arrow: back. "
                "h: a hint, then another; c: the checks of this step; g: write the pictures to files, "
                "and open them if there is a desktop; m: the page of the lesson; q: leave.");
        act_on_common_key(press.key, place);
    }
}

void StepViewer::act_on_common_key(Key key, const Place& place) {
    if (key == Key::quit) throw Quit{};
    if (key == Key::hint) hint(place);
    if (key == Key::graph) write_graph(place);
    if (key == Key::lesson_page) show_page();
}

void StepViewer::go(Place& place, Move move) {
    if (move == Move::next)
        ++place.at;
    else if (static_cast<int>(place.at) > std::max(first_, 1))
        --place.at;
    else if (first_ > 1)
        say(fmt::format("This run began at step {}. ./learn run {} begins at step 1.", first_,
                        lesson().slug));
    else
        say("This is the first step.");
}

void StepViewer::present(const Place& place) {
    unshown_ = 0;
    for (const Event& event : place.record.steps[place.at]) show(event);
    fold_checks();
}

std::vector<Try> StepViewer::ask(const Prediction& prediction, const Record& record) {
    std::vector<Try> tries;
    until_next(record, [&](const Place& live) { return asked(prediction, live, tries); });
    return tries;
}

// Asks until an answer is right or skipped, or no attempt is left. A visit to an earlier step deletes no Try.
StepViewer::Move StepViewer::asked(const Prediction& prediction, const Place& place,
                                   std::vector<Try>& tries) {
    while (tries.empty() || (!prediction.is_right(tries.back()) && tries.size() < prediction.tries())) {
        const auto [move, one] = prompt(prediction, place, !tries.empty());
        if (move != Move::next || !one) return move;
        tries.push_back(*one);
        if (!prediction.is_right(*one) && tries.size() < prediction.tries())
            write_lines(reply_lines(prediction, *one, lesson(), style()));
    }
    return Move::next;
}

std::string StepViewer::prompt_text(const Prediction& prediction, bool again) const {
    const std::string what = wanted_answer(prediction);
    const char* begin = again ? "once more," : prediction.is_typed ? "type" : "answer";
    const std::string line =
        mode().presents ? fmt::format("       SPACE shows the answer; {} {} (? keys) > ", begin, what)
                        : fmt::format("       {} {} (h hint, ? keys, s skip) > ", begin, what);
    return painted(line.size() + 8 < style().width ? line : fmt::format(" {} > ", what), Tone::ask, style());
}

StepViewer::Answered StepViewer::prompt(const Prediction& prediction, const Place& place, bool again) {
    std::string typed;
    for (bool resumed = false, explained = false;;) {
        if (!resumed) forget_typed_ahead();
        write(prompt_text(prediction, again) + typed);
        const KeyPress press = prediction.is_typed ? read_number(typed) : read_key();
        resumed = press.key == Key::resumed;
        if (auto one = parse_try(prediction, press, typed)) {
            write(prediction.is_typed ? "\n" : fmt::format("{}\n", press.digit));
            return {Move::next, std::move(one)};
        }
        const bool goes_on = press.key == Key::next && (press.byte == ' ' || typed.empty());
        const bool has_no_meaning = (press.key == Key::next && !(mode().presents && goes_on)) ||
                                    press.key == Key::checks || press.key == Key::digit ||
                                    press.key == Key::other;
        if (has_no_meaning && typed.empty() && explained) {  // writes the same line again, not one more
            write("\r");
            continue;
        }
        explained = explained || has_no_meaning;
        write("\n");
        const Key key = mode().presents && goes_on ? Key::skip : press.key;
        if (key == Key::skip || key == Key::page_down)
            return {Move::next, std::nullopt};  // a slide clicker skips questions: it has no digits
        if (key == Key::back) return {Move::back};
        if (key == Key::keys)
            say(fmt::format(
                "{}  h: a hint, then another; s or page down: the answer. b: back, g: write the "
                "pictures to files, m: the page of the lesson, q: leave.",
                prediction.is_typed ? "A number such as -0.5, 2/3 or 2^(1/3), then ENTER: your answer."
                                    : wanted_answer(prediction) + ": your answer."));
        if (has_no_meaning) {
            say(prediction.is_typed
                    ? "Type a number such as -0.5 or 2/3, then ENTER, or s to see the answer (q quits)."
                    : fmt::format("Press 1 to {}, or s to see the answer (q quits).",
                                  prediction.options.size()));
            typed.clear();
        }
        act_on_common_key(key, place);
    }
}

// Reads a number, and returns the first other key that has a meaning. ENTER submits the number.
KeyPress StepViewer::read_number(std::string& typed) {
    constexpr std::size_t longest = 24;
    for (;;) {
        const KeyPress press = read_key();
        const bool rubs_out = press.byte == 127 || press.byte == 8;
        const bool belongs =
            press.key == Key::digit || (press.byte != 0 && std::strchr("-.,/^e()", press.byte) != nullptr);
        if (rubs_out) {
            if (typed.empty()) continue;
            typed.pop_back();
            write("\b \b");
        } else if (belongs && typed.size() < longest) {
            typed += press.byte;
            write(std::string(1, press.byte));
        } else if (!belongs && press.key != Key::other && press.key != Key::checks &&
                   (press.byte != ' ' || mode().presents)) {
            return press;
        }
    }
}

void StepViewer::hint(const Place& place) {
    const auto* prediction = last_of<Prediction>(place.record.steps[place.at]);
    if (prediction == nullptr) return say("No hint for this step.");
    const int before = hints_given_[place.at]++;
    say(before == 0   ? "Hint: " + prediction->hints.question
        : before == 1 ? "Hint: " + prediction->hints.pointer
                      : "There are two hints; s shows the answer.");
}

void StepViewer::write_graph(const Place& place) {
    std::vector<const Graph*> graphs;  // graphs of the last step that has any
    for (std::size_t step = place.at + 1; step-- > 0 && graphs.empty();)
        for (const Event& event : place.record.steps[step])
            if (const auto* graph = std::get_if<Graph>(&event.is)) graphs.push_back(graph);
    if (graphs.empty()) {
        say("No picture so far in this lesson.");
        return;
    }
    const char* work = std::getenv("TALLY_WORK");
    const std::string folder = std::string(work == nullptr ? "work" : work) + "/graphs";
    try {
        make_folder(folder);
        for (const Graph* graph : graphs) {
            const bool own = graph->name == lesson().slug;
            const std::string path = folder + "/" + lesson().slug + (own ? "" : "-" + graph->name);
            const std::string picture = path + ".svg";
            write_whole(picture, graph->svg);
            if (!graph->dot.empty()) write_whole(path + ".dot", graph->dot);
            say(fmt::format("Wrote {}{}: {}", picture, graph->dot.empty() ? "" : " and .dot", graph->name));
            write_lines({"       " + file_link(picture)});  // unwrapped, so terminals recognise the link
            open_file(picture);
        }
    } catch (const WriteError& error) {
        say(error.what());  // the lesson continues
    }
}

}  // namespace tally::lesson
