// Defines TALLY_ASAN as 1 in builds with AddressSanitizer and as 0 in other builds.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define TALLY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TALLY_ASAN 1
#endif
#endif
#ifndef TALLY_ASAN
#define TALLY_ASAN 0
#endif
