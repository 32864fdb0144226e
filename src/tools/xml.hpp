// escape_xml() escapes text for XML, for example in an SVG picture.
#pragma once

#include <string>

namespace tally {

inline std::string escape_xml(const std::string& text) {
    std::string result;
    for (char c : text) {
        if (c == '&')
            result += "&amp;";
        else if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '"')
            result += "&quot;";
        else
            result += c;
    }
    return result;
}

}  // namespace tally
