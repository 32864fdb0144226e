// The version (SemVer), for the preprocessor and for people; the build reads the three numbers from here.
#pragma once

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0

namespace tally {

// Of the library that a program is compiled with.
struct Version {
    int major, minor, patch;
};

inline constexpr Version version{TALLY_VERSION_MAJOR, TALLY_VERSION_MINOR, TALLY_VERSION_PATCH};

}  // namespace tally
