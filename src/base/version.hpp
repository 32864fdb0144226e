// The version (SemVer) of the library that a program is compiled with; CMake reads the three numbers from here.
#pragma once

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0
