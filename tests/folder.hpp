// A Folder makes a temporary folder for a test, and removes this folder at the end.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>

#include "tally/base/error.hpp"

namespace tally::test {

class Folder {
public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "tally-test-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw Error("no temporary folder");
        path_ = pattern;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    // Returns the number of files whose names do not contain `but`.
    std::ptrdiff_t files(const std::string& but = "/") const {
        return std::count_if(std::filesystem::directory_iterator(path_),
                             std::filesystem::directory_iterator(), [&](const auto& entry) {
                                 return entry.path().filename().string().find(but) == std::string::npos;
                             });
    }

private:
    std::filesystem::path path_;
};

}  // namespace tally::test
