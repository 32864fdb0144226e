// The version (SemVer) of the library. CMake reads the three numbers from here.
#pragma once

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0
