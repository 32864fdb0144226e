// A `Sheet` draws texts, lines and shapes at given positions on a page that grows as needed.
#pragma once

#include <string>
#include <vector>

namespace tally::drawing {

class Sheet {
public:
    static constexpr int widest = 1400;  // pixels that a projector shows with text of 18 px
    static constexpr int margin = 32;

    struct Words {
        int left = 0, top = 0, right = 0, bottom = 0;
        std::string text;
    };

    // `told` describes the picture for screen readers, by default with all its texts.
    explicit Sheet(std::string title, std::string told = "");

    // Writes a text with the baseline at y, and returns the x coordinate of its end. The styles are t-middle,
    // t-end, t-strong, t-quiet, t-good and t-bad, and can be combined.
    int text(int x, int y, const std::string& words, const std::string& style = "");
    void rule(int x1, int y1, int x2, int y2, const std::string& style = "s-line");
    void arrow(int x1, int y1, int x2, int y2, const std::string& style = "");  // s-bad, s-good
    void box(int x, int y, int w, int h, const std::string& style = "s-band", int radius = 10);
    void circle(int x, int y, int radius, const std::string& style = "s-ring");
    // Draws a path from SVG commands with integer coordinates. `covers` must contain all corners of the path.
    void path(const std::string& commands, const std::string& style, const Words& covers);

    int width() const { return right_ + margin; }
    int height() const { return bottom_ + margin; }
    int top() const { return margin + 56; }  // y of the area below the title
    const std::vector<Words>& words() const { return words_; }
    std::string svg() const;

private:
    void cover(int x, int y);

    std::string title_, told_, body_;
    std::vector<Words> words_;
    int right_ = 0, bottom_ = 0;
};

int width_of_words(const std::string& words, const std::string& style = "");

}  // namespace tally::drawing
