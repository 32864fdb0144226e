// Defines main() of every lesson.
#include "course/kit/talk.hpp"

int main(int argc, char** argv) { return tally::lesson::run_registered(argc, argv); }
