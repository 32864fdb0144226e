// Step mode.
#include "tally/lesson/step_viewer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tally/lesson/files.hpp"
#include "tally/lesson/text.hpp"

namespace tally::lesson {

namespace {

template <class E> const E* last_of(const std::vector<Event>& events) {
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
        if (const auto* found = std::get_if<E>(&event->is)) return found;
    }
    return nullptr;
}

}  // namespace

void StepViewer::say(const std::string& text) {
    const Style now = style();
    std::vector<std::string> lines = wrapped(now.ascii ? to_ascii(text) : text, now.width - 8, 2);
    for (auto& line : lines) line.insert(0, 7, ' ');
    write_lines(lines);
}

void StepViewer::end_of_step(const Record& record) { wait(record, "next"); }
void StepViewer::end_of_lesson(const Record& record) { wait(record, "leave"); }

void StepViewer::wait(const Record& record, const char* next) {
    for (;;) {
        Place place{record, record.steps.size() - 1};
        const Move move = bar(place, next);
        if (move == Move::next) return;
        const std::size_t before = place.at;
        go(place, move);
        if (place.at != before || move == Move::restart) browse(place);
    }
}

// The line of keys below a step. Returns when one of them leads elsewhere.
StepViewer::Move StepViewer::bar(const Place& place, const char* next) {
    for (bool resumed = false;;) {
        const std::size_t width = style().width;
        std::string line = fmt::format(" SPACE {}  b back  h hint  g graph  r restart  q quit", next);
        if (line.size() >= width) line = fmt::format(" SPACE {}  b h g r q", next);
        if (line.size() >= width) line = " SPACE";
        // Before the line appears: what is pressed on seeing it counts, also where it is drawn once more.
        if (!resumed) forget_typed_ahead();
        write(line);
        const KeyPress press = read_key();
        resumed = press.key == Key::resumed;
        // The line goes away as it came, without an escape sequence; where nothing may be rewritten it stays.
        write(mode().rewrites ? "\r" + std::string(line.size(), ' ') + "\r" : "\n");
        switch (press.key) {
            case Key::next:
            case Key::page_down:
                return Move::next;
            case Key::back:
                return Move::back;
            case Key::restart:
                return Move::restart;
            case Key::hint:
                hint(place);
                break;
            case Key::graph:
                write_graph(place);
                break;
            case Key::quit:
                throw Quit{};
            case Key::skip:
            case Key::digit:
            case Key::other:
            case Key::resumed:
                break;
        }
    }
}

void StepViewer::go(Place& place, Move move) {
    switch (move) {
        case Move::next:
            ++place.at;
            break;
        case Move::back:
            if (place.at > 1) {
                --place.at;
            } else {
                say("This is the first step.");
            }
            break;
        case Move::restart:
            place.at = 1;
            place.asks_from = 1;
            write("\n");
            show(place.record.steps.front().front());
            break;
    }
}

void StepViewer::browse(Place place) {
    for (;;) {
        Move move = present(place);
        if (move == Move::next && place.at == place.live()) return;
        if (move == Move::next) {
            for (;;) {
                move = bar(place, "next");
                if (move != Move::back || place.at > 1) break;
                go(place, move);  // says that there is nothing before it
            }
        }
        go(place, move);
    }
}

StepViewer::Move StepViewer::present(Place& place) {
    for (const Event& event : place.record.steps[place.at]) {
        const auto* reveal = std::get_if<Reveal>(&event.is);
        if (reveal == nullptr) {
            show(event);
            continue;
        }
        if (place.at >= place.asks_from) {
            const Answered answered = prompt(reveal->prediction, place);
            if (answered.move != Move::next) return answered.move;
            answered_again_[place.at] = answered.chosen;
            place.asks_from = place.at + 1;
        }
        const auto again = answered_again_.find(place.at);
        show({event.step,
              Reveal{reveal->prediction, again == answered_again_.end() ? reveal->chosen : again->second}});
    }
    return Move::next;
}

std::optional<int> StepViewer::ask(const Prediction& prediction, const Record& record) {
    for (;;) {
        Place place{record, record.steps.size() - 1};
        const Answered answered = prompt(prediction, place);
        if (answered.move == Move::next) return answered.chosen;
        const std::size_t before = place.at;
        go(place, answered.move);
        if (place.at != before || answered.move == Move::restart) browse(place);
    }
}

StepViewer::Answered StepViewer::prompt(const Prediction& prediction, const Place& place) {
    const auto count = static_cast<int>(prediction.options.size());
    for (bool resumed = false;;) {
        std::string line = fmt::format("       answer 1-{} (h hint, s skip) > ", count);
        if (line.size() >= style().width) line = fmt::format(" 1-{} > ", count);
        if (!resumed) forget_typed_ahead();
        write(painted(line, Tone::ask, style()));
        const KeyPress press = read_key();
        resumed = press.key == Key::resumed;
        if (press.key == Key::digit && press.digit <= count) {
            write(fmt::format("{}\n", press.digit));
            return {Move::next, press.digit};
        }
        write("\n");
        switch (press.key) {
            case Key::skip:
            case Key::page_down:
                return {Move::next, std::nullopt};  // a slide clicker has no digits
            case Key::back:
                return {Move::back, std::nullopt};
            case Key::restart:
                return {Move::restart, std::nullopt};
            case Key::hint:
                hint(place);
                break;
            case Key::graph:
                write_graph(place);
                break;
            case Key::quit:
                throw Quit{};
            case Key::next:
            case Key::digit:
            case Key::other:
                say(fmt::format("Press 1 to {}, or s to see the answer (q quits).", count));
                break;
            case Key::resumed:
                break;
        }
    }
}

void StepViewer::hint(const Place& place) {
    const auto* prediction = last_of<Prediction>(place.record.steps[place.at]);
    say(prediction == nullptr || prediction->hint.empty() ? "No hint for this step."
                                                          : "Hint: " + prediction->hint);
}

void StepViewer::write_graph(const Place& place) {
    const Graph* graph = nullptr;
    for (std::size_t step = place.at + 1; step-- > 0 && graph == nullptr;)
        graph = last_of<Graph>(place.record.steps[step]);
    if (graph == nullptr) {
        say("No graph so far in this lesson.");
        return;
    }
    const char* work = std::getenv("TALLY_WORK");
    const std::string folder = std::string(work == nullptr ? "work" : work) + "/graphs";
    const std::string path = folder + "/" + lesson().slug;
    try {
        make_folder(folder);
        write_whole(path + ".svg", graph->svg);
        write_whole(path + ".dot", graph->dot);
        say(fmt::format("Wrote {}.svg and .dot: {}", path, graph->name));
    } catch (const WriteError& error) {
        say(error.what());  // the lesson itself goes on
    }
}

}  // namespace tally::lesson
