// This library exists when a module is linked, but is missing when the module is loaded.
extern "C" int tally_test_lacking() { return 0; }
