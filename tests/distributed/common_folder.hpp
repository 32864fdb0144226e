// A CommonFolder is a temporary folder that all processes of a test share.
#pragma once

#include <optional>
#include <string>

#include "distributed/world.hpp"
#include "folder.hpp"

namespace tally::test {

// The folder exists until every process has destroyed its CommonFolder.
class CommonFolder {
public:
    CommonFolder() {
        if (me() == 0) folder_.emplace();
        path_ = world().all_gather("a folder", folder_ ? *folder_ / "" : "")[0];
    }
    ~CommonFolder() { world().all_gather("the folder's end"); }
    std::string operator/(const std::string& name) const { return path_ + name; }

private:
    std::optional<Folder> folder_;
    std::string path_;
};

}  // namespace tally::test
