// Defines the exit codes of the runner.
#pragma once

namespace tally::lesson {

enum Exit : int { good = 0, check_failed = 1, usage = 2, io_failed = 5, skipped = 77 };

}  // namespace tally::lesson
