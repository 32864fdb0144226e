// A Viewer renders the events of a lesson. A Viewer may wait for keys, ask questions and go back.
#pragma once

#include <memory>
#include <vector>

#include "course/kit/event.hpp"
#include "course/kit/flags.hpp"

namespace tally::lesson {

struct Quit {
};  // thrown when the learner quits; not a std::exception, so that a lesson does not catch it by accident

class Viewer {
public:
    virtual ~Viewer() = default;
    virtual void show(const Event&) {}
    virtual void progress(const ProgressMade&, [[maybe_unused]] bool another_tenth) {}
    virtual std::vector<Try> ask(const Prediction&, const Record&) { return {}; }  // the tries in order
    virtual void end_of_step(const Record&) {}  // may wait for a key; throws Quit
    virtual void end_of_lesson(const Record&) {}
};

std::unique_ptr<Viewer> make_viewer(const Lesson& lesson, const Flags& flags, const Mode& mode);

class TextViewer : public Viewer {
public:
    TextViewer(const Lesson& lesson, const Mode& mode, bool width_is_fixed)
        : lesson_(lesson), mode_(mode), width_is_fixed_(width_is_fixed) {}
    void show(const Event& event) override;
    void progress(const ProgressMade& made, bool another_tenth) override;

protected:
    Style style() const;  // with the present width of the window
    const Lesson& lesson() const { return lesson_; }
    const Mode& mode() const { return mode_; }
    void write(std::string_view text);
    void write_lines(const std::vector<std::string>& lines);

private:
    void clear_bar();

    const Lesson& lesson_;
    Mode mode_;
    bool width_is_fixed_;
    bool bar_on_screen_ = false;
    double bar_drawn_at_ = 0;
};

}  // namespace tally::lesson
