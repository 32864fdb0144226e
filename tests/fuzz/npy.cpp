// Fuzzes load_npy(). The function must return an array that is not larger than the file, or throw an Error
// with the name of the file.
#include "tally/io/npy.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "reader.hpp"
#include "tally/base/error.hpp"

namespace {

template <class S> void load(const std::string& path, std::size_t size) {
    try {
        if (tally::load_npy<S>(path).size() * sizeof(S) > size) std::abort();
    } catch (const tally::Error& error) {
        if (std::string(error.what()).find(path) == std::string::npos) std::abort();
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = ::memfd_create("npy", MFD_CLOEXEC);
    static const std::string path = "/proc/self/fd/" + std::to_string(file);
    if (::ftruncate(file, 0) != 0 || ::pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
        std::abort();
    load<float>(path, size);
    load<double>(path, size);
    load<std::int32_t>(path, size);
    return 0;
}
