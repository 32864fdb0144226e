// Without libFuzzer, passes every file of the given folders to a reader. A folder without files is an error.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "reader.hpp"

int main(int count, char** words) try {
    if (count < 2) throw std::invalid_argument("usage: fuzz_READER FOLDER...");
    for (int i = 1; i < count; ++i) {
        std::vector<std::filesystem::path> files;
        for (const auto& entry : std::filesystem::directory_iterator(words[i])) files.push_back(entry.path());
        std::sort(files.begin(), files.end());
        for (const auto& path : files) {
            std::ifstream file(path, std::ios::binary);
            const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
            std::printf("%s, %zu bytes\n", path.c_str(), bytes.size());
            std::fflush(stdout);  // so that the last line names the file that crashes
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        }
        if (files.empty()) throw std::invalid_argument(std::string(words[i]) + " is empty");
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_READER: %s\n", error.what());
    return 1;
}
