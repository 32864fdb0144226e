// main() of every lesson.
#include "tally/lesson/talk.hpp"

int main(int argc, char** argv) { return tally::lesson::run_given(argc, argv); }
