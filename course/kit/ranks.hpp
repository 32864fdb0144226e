// Runs a lesson on several processes (ranks). The program that the learner starts is not a rank: it first
// runs itself as all the ranks, which execute the same lesson and print nothing. on_ranks() (on_ranks.hpp)
// writes the results of the ranks to a file, and the program reads them there when it shows the lesson.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "course/kit/lesson.hpp"

namespace tally::lesson {

bool on_several_ranks(const Lesson& lesson);

// Returns the reason why ranks cannot be started on this machine, or an empty string.
std::string why_no_launcher();

// Starts the command as several processes and waits until they end. A flag names the file to which rank 0
// writes. A signal that arrives while the ranks run is raised again after the ranks have ended.
void run_ranks(int ranks, std::vector<std::string> command);

// ---- in a rank ----
void become_rank(const std::string& file);
bool is_rank();
void write_results(std::size_t line, const std::vector<std::string>& results_by_rank);

// ---- in the program that shows the lesson ----
// Returns the results for a line of the lesson. Throws Error if the ranks did not reach the line.
std::vector<std::string> take_results(std::size_t line);
void require_ranks_done();  // throws if the ranks ended with an error or have more results

}  // namespace tally::lesson
