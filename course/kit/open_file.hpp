// Creates a link to a file, and opens the file with the default program of the desktop.
#pragma once

#include <string>

namespace tally::lesson {

std::string percent_encoded(const std::string& text);  // encodes a path for a link
std::string file_link(const std::string& path);        // file:///...
void open_file(const std::string& path);               // calls xdg-open; does nothing without a desktop

}  // namespace tally::lesson
