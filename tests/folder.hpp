// A folder of a test's own, gone afterwards.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
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
    std::ptrdiff_t files() const {
        return std::distance(std::filesystem::directory_iterator(path_),
                             std::filesystem::directory_iterator());
    }

private:
    std::filesystem::path path_;
};

}  // namespace tally::test
