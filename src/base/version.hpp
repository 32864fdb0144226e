// Defines the version of the library (SemVer). CMake reads the version numbers from this file.
#pragma once

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0
