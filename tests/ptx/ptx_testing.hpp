// Runs short PTX programs for the tests of the executor.
#pragma once

#include "execute.hpp"
#include "machine.hpp"
#include "program.hpp"

namespace tally::test {

using ptx::in_global_memory;
inline const std::string ptx_head = ".version 8.0\n.target sm_80\n.address_size 64\n";

// Runs the kernel "k", whose parameters are pointers, and returns the findings.
inline std::vector<std::string> run_ptx(const std::string& text, unsigned blocks, unsigned threads,
                                        const std::vector<const void*>& pointers,
                                        const std::string& order = "forward") {
    return ptx::execute(text, {"k", blocks, threads, pointers, order});
}

}  // namespace tally::test
