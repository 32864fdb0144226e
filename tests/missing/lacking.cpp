// A library that is there when a module is linked, and is not found when it is loaded.
extern "C" int tally_test_lacking() { return 0; }
