// The version (SemVer), for the preprocessor and for people; the build reads the three numbers from here.
#pragma once

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0
