// A TextTable formats rows of text in columns. Each column is as wide as its widest entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tally/base/text.hpp"

namespace tally {

class TextTable {
public:
    enum class Side : std::uint8_t { left, right };
    explicit TextTable(std::vector<std::pair<std::string, Side>> columns) {
        Row head;
        for (auto& [name, side] : columns) {
            head.push_back(std::move(name));
            sides_.push_back(side);
        }
        add(std::move(head));
    }
    void add(std::vector<std::string> row) {
        for (std::string& entry : row) entry = detail::clean_text(entry, 60);
        rows_.push_back(std::move(row));
    }
    std::string text() const {
        std::vector<int> widths(sides_.size());
        for (const Row& row : rows_)
            for (std::size_t i = 0; i < row.size(); ++i)
                widths[i] = std::max(widths[i], detail::text_columns(row[i]));
        std::string text;
        for (const Row& row : rows_) {
            std::string line;
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::string pad(static_cast<std::size_t>(widths[i] - detail::text_columns(row[i])),
                                      ' ');
                line += (i > 0 ? "  " : "") + (sides_[i] == Side::left ? row[i] + pad : pad + row[i]);
            }
            line.erase(line.find_last_not_of(' ') + 1);
            text += line + "\n";
        }
        return text;
    }

private:
    using Row = std::vector<std::string>;
    std::vector<Side> sides_;
    std::vector<Row> rows_;
};

}  // namespace tally
