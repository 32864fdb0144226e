// xml_fault() checks that a picture is well-formed XML.
#pragma once

#include <regex>
#include <string>
#include <vector>

namespace tally::test {

// Describes the first fault in the XML. Returns "" if all tags nest and close, all attributes are quoted, and
// every & begins an entity.
inline std::string xml_fault(const std::string& xml) {
    static const std::regex tag("<(/?)([a-zA-Z]+)((?: [a-zA-Z:-]+=\"[^\"<]*\")*)(/?)>");
    static const std::regex stray("&(?!(amp|lt|gt|quot);)");
    if (std::regex_search(xml, stray)) return "a bare &";
    std::vector<std::string> open;
    std::size_t at = 0;
    for (auto it = std::sregex_iterator(xml.begin(), xml.end(), tag); it != std::sregex_iterator(); ++it) {
        const auto begin = static_cast<std::size_t>(it->position());
        if (xml.substr(at, begin - at).find_first_of("<>") != std::string::npos)
            return "a bare < or > at " + std::to_string(at);
        if (open.empty() && at > 0) return "text after the root";
        at = begin + static_cast<std::size_t>(it->length());
        const std::string name = (*it)[2];
        if ((*it)[4].length() > 0) continue;
        if ((*it)[1].length() == 0) {
            open.push_back(name);
        } else {
            if (open.empty() || open.back() != name) return "</" + name + "> closes nothing";
            open.pop_back();
        }
    }
    if (!open.empty()) return "<" + open.back() + "> is never closed";
    return xml.substr(at) == "\n" ? "" : "text after the end";
}

}  // namespace tally::test
