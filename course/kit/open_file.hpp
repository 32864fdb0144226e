// A file for whoever looks at it: a link to it, and the desktop's own program.
#pragma once

#include <string>

namespace tally::lesson {

std::string percent_encoded(const std::string& text);  // as it may stand in a link
std::string file_link(const std::string& path);        // file:///...
void open_file(const std::string& path);  // by xdg-open, where there is a desktop and that; else nothing

}  // namespace tally::lesson
