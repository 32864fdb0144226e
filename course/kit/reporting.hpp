// A viewer that also tells the runner what was answered.
#pragma once

#include <memory>
#include <utility>

#include "tally/lesson/viewer.hpp"

namespace tally::lesson {

// Shows what another shows; each question that was asked goes to the descriptor, as lines of answers.
class ReportingViewer : public Viewer {
public:
    ReportingViewer(std::unique_ptr<Viewer> shown, const Lesson& lesson, int report)
        : shown_(std::move(shown)), lesson_(lesson), report_(report) {}
    void show(const Event& event) override;
    void progress(const ProgressMade& made, bool another_tenth) override {
        shown_->progress(made, another_tenth);
    }
    std::vector<Try> ask(const Prediction& prediction, const Record& record) override {
        return shown_->ask(prediction, record);
    }
    void end_of_step(const Record& record) override { shown_->end_of_step(record); }
    void end_of_lesson(const Record& record) override { shown_->end_of_lesson(record); }

private:
    std::unique_ptr<Viewer> shown_;
    const Lesson& lesson_;
    int report_;
};

}  // namespace tally::lesson
