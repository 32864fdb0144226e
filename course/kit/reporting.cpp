// Telling the runner what was answered.
#include "tally/lesson/reporting.hpp"

#include "tally/lesson/answers.hpp"
#include "tally/lesson/files.hpp"

namespace tally::lesson {

void ReportingViewer::show(const Event& event) {
    if (const auto* reveal = std::get_if<Reveal>(&event.is)) {
        for (const auto& answer : answers_of(*reveal, lesson_.slug))
            write_to(report_, line_of(answer) + "\n");
    }
    shown_->show(event);
}

}  // namespace tally::lesson
