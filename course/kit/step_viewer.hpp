// A StepViewer waits for a key after each step, asks for predictions, and shows earlier steps again.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "course/kit/terminal.hpp"
#include "course/kit/viewer.hpp"

namespace tally::lesson {

class StepViewer : public TextViewer {
public:
    StepViewer(const Lesson& lesson, const Mode& mode, bool width_is_fixed)
        : TextViewer(lesson, mode, width_is_fixed) {}
    std::vector<Try> ask(const Prediction& prediction, const Record& record) override;
    void show(const Event& event) override;  // counts checks that hold; end_of_step() reports their number
    void end_of_step(const Record& record) override;
    void end_of_lesson(const Record& record) override;

private:
    enum class Move : std::uint8_t { next, back };
    struct Answered {
        Move move = Move::next;
        std::optional<Try> one = {};  // empty: skipped
    };

    static constexpr int unopened = -1;

    // The step on screen has the index `at`. The lesson executes the step with the index live().
    struct Place {
        const Record& record;
        std::size_t at;
        std::size_t live() const { return record.steps.size() - 1; }
    };

    void wait(const Record& record, const char* next);
    void until_next(const Record& record, const std::function<Move(const Place&)>& wait_at_live);
    Move bar(const Place& place, const char* next);
    void act_on_common_key(Key key, const Place& place);  // h, g, m and q; ignores other keys
    Move asked(const Prediction& prediction, const Place& place, std::vector<Try>& tries);
    std::string prompt_text(const Prediction& prediction, bool again) const;
    Answered prompt(const Prediction& prediction, const Place& place, bool again);
    KeyPress read_number(std::string& typed);
    void go(Place& place, Move move);
    void present(const Place& place);  // shows one recorded step
    void hint(const Place& place);
    void checks(const Place& place);
    void show_page();
    void fold_checks();
    void clear_screen_for(int step);
    void write_graph(const Place& place);
    void say(const std::string& text);

    KeyMode keys_;
    int unshown_ = 0;         // number of checks of this step that hold and are not yet reported
    int first_ = 0;           // the first step on screen, after 1 with --from
    int on_page_ = unopened;  // the step on screen with --present
    std::map<std::size_t, int> hints_given_;  // by step
};

}  // namespace tally::lesson
