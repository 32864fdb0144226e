// What every reader's file in this folder defines: the one entry through which a fuzzer, or a replay
// of the corpus, hands it bytes. A reader that is asked for more files is one more .cpp here and a
// folder in corpus/.
#pragma once

#include <cstddef>
#include <cstdint>

// An Error is a fine answer to bad bytes; anything else that goes wrong must crash. libFuzzer's name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
