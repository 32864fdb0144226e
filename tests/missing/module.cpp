// This source builds defective device modules. MODULE_IS selects the defect.
#include <algorithm>

#include "tally/device/backend_abi.hpp"

// tests/CMakeLists.txt uses the same numbers.
#define OTHER_VERSION 1
#define OTHER_BUILD 2
#define NO_MODULE 3
#define OLD_DRIVER 4
#define LACKS_LIBRARY 5

#if MODULE_IS != NO_MODULE
extern "C" int tally_test_lacking();

namespace tally::backend {
namespace {

AbiVersion own_stamp() {
    AbiVersion own = stamp;
    if (MODULE_IS == OTHER_VERSION) std::copy_n("0.0.9", 6, own.version);
    if (MODULE_IS == OTHER_BUILD) own.table += 8;
    return own;
}

}  // namespace
}  // namespace tally::backend

extern "C" {
extern const tally::backend::AbiVersion tally_module_stamp;
const tally::backend::AbiVersion tally_module_stamp = tally::backend::own_stamp();
const tally::backend::Table* tally_module_open(const tally::backend::HostApi* host) {
    const char* words = "this machine has no CUDA device (CUDA driver version is insufficient)";
#if MODULE_IS == LACKS_LIBRARY
    if (tally_test_lacking() == 0) words = "";
#endif
    if (MODULE_IS != OLD_DRIVER) words = "it was opened nevertheless";
    host->failed(words);
    return nullptr;
}
}
#endif
