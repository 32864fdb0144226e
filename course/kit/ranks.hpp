// A lesson that runs on several processes, its ranks. The program that somebody calls shows the lesson and is none
// of them: it first runs itself as all the ranks, which come through the same talk and show nothing. What they
// computed in on_ranks() (on_ranks.hpp) is kept in a file, and the talk finds it there when it is shown.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "course/kit/lesson.hpp"

namespace tally::lesson {

// Lessons whose record declares `--ranks` run on so many.
bool on_several_ranks(const Lesson& lesson);

// Why none can be started here; empty where they can.
std::string no_launcher();

// Runs the command as so many ranks, to their end; each is told a file to which rank 0 writes. What a signal asked for
// meanwhile is done when they have ended.
void run_ranks(int ranks, std::vector<std::string> command);

// ---- in a rank ----
void become_rank(const std::string& file);
bool is_rank();
void keep(std::size_t line, const std::vector<std::string>& said);

// ---- in the program that shows ----
// What the ranks have said there, by rank; an Error, in words, if they did not come so far.
std::vector<std::string> kept(std::size_t line);
void expect_ranks_done();  // an Error if they have more to say, or ended badly

}  // namespace tally::lesson
