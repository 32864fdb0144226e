// page(), text() and rule() return the parts of SVG that all charts share.
#pragma once

#include <cstdio>
#include <string>
#include <type_traits>

#include "tally/tools/xml.hpp"

namespace tally::svg {

template <class... Values> std::string formatted(const char* format, Values... values) {
    static_assert(!(std::is_floating_point_v<Values> || ...), "write to_text(number, digits)");
    char text[200];
    std::snprintf(text, sizeof text, format, values...);
    return text;
}

inline std::string text(int x, int y, const char* style, const std::string& words) {
    return formatted("<text x=\"%d\" y=\"%d\" class=\"t-text %s\">", x, y, style) + escape_xml(words) +
           "</text>\n";
}

inline std::string rule(int x1, int y1, int x2, int y2, const char* style) {
    return formatted("<path d=\"M%d,%d L%d,%d\" class=\"%s\"/>\n", x1, y1, x2, y2, style);
}

inline std::string on_dark(const std::string& styles) {
    return "@media (prefers-color-scheme:dark){\n" + styles + "}\n";
}

inline const std::string plain_dark =
    ".t-page{fill:#0d1117}\n"
    ".t-text{fill:#e6edf3}\n"
    ".t-rule{stroke:#3d444d}\n"
    ".t-axis{stroke:#b1bac4}\n";

// Returns the first lines of an SVG picture. `told` describes the picture for screen readers. `dark` contains
// the styles that differ on a dark page. If `dark` is empty, the picture is always light.
inline std::string page(int width, int height, const std::string& title, const std::string& told,
                        const std::string& styles, const std::string& dark = "") {
    return formatted("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" ", width, height) +
           formatted("viewBox=\"0 0 %d %d\" role=\"img\" ", width, height) +
           "aria-labelledby=\"t-title t-desc\">\n<title id=\"t-title\">" + escape_xml(title) +
           "</title>\n<desc id=\"t-desc\">" + escape_xml(told) +
           "</desc>\n"
           "<style>\n"
           ".t-page{fill:#ffffff}\n"
           ".t-text{font-family:monospace;font-size:18px;fill:#1f2328}\n"
           ".t-title{font-size:22px;font-weight:bold}\n"
           ".t-middle{text-anchor:middle}\n"
           ".t-end{text-anchor:end}\n"
           ".t-rule{stroke:#d5dbe1;stroke-width:1}\n"
           ".t-axis{stroke:#3d444d;stroke-width:2}\n" +
           styles + (dark.empty() ? dark : on_dark(plain_dark + dark)) + "</style>\n" +
           formatted("<rect width=\"%d\" height=\"%d\" rx=\"12\" class=\"t-page\"/>\n", width, height);
}

}  // namespace tally::svg
