// Tests Timeline, which records the bytes of the memory report at each event and finds the peak.
#include "tally/tools/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/random_graph.hpp"
#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "tally/base/text.hpp"
#include "tally/tools/scope_name.hpp"
#include "tools/xml_fault.hpp"

using namespace tally;
using namespace tally::test;

namespace {

Tensor half_weights(const Shape& shape = {8, 16}) { return parameter(Array<float>::full(shape, 0.5f)); }

// Records the memory report at each event, so that the tests can compare the reports with the timeline.
struct Reports : Observer {
    void on_forward(const ForwardEvent&) override { note(true); }
    void after_backward(const Node&) override { note(false); }
    void note(bool is_forward) {
        reports.push_back(memory::report());
        forward.push_back(is_forward);
    }
    std::vector<memory::Report> reports;
    std::vector<bool> forward;
};

// Returns an operation that allocates a buffer of `bytes` bytes while it computes.
Tensor allocating(const std::string& name, std::int64_t bytes, Tensor x) {
    return custom(
        name,
        [=](const Array<float>& in) {
            Array<float>::empty({bytes / 4});
            return in.clone();
        },
        [](GradInputs<Array<float>> to, const Array<float>& dy, const Array<float>&, const Array<float>&) {
            to.add(0, dy);
        },
        std::move(x));
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

}  // namespace

TEST_CASE("Timeline: samples are the memory report after each event, and the peak is the report's") {
    const std::uint64_t seed = GENERATE(range(1u, 31u));
    CAPTURE(seed);
    Random random(seed);
    RandomGraph graph(random, random.whole(1, 20));
    memory::reset_peak();
    const Timeline timeline;
    Reports reports_seen;
    const Observer::Scope scope(reports_seen);
    graph.grow(random.whole(1, 25));
    const Tensor loss = graph.loss();
    graph.drop_results();
    loss.backward();
    const std::vector<Timeline::Sample>& samples = timeline.samples();
    REQUIRE(samples.size() == reports_seen.reports.size());
    CHECK(timeline.events() == samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        CHECK(samples[i].event == i + 1);
        CHECK(samples[i].forward == reports_seen.forward[i]);
        CHECK(samples[i].in_use == reports_seen.reports[i].in_use);
        CHECK(std::equal(samples[i].in_use_by.begin(), samples[i].in_use_by.end(),
                         reports_seen.reports[i].in_use_by));
    }
    CHECK(timeline.peak().bytes == reports_seen.reports.back().peak);
    CHECK(reports_seen.reports[timeline.peak().at.event - 1].peak == timeline.peak().bytes);
    if (timeline.peak().at.event > 1)
        CHECK(reports_seen.reports[timeline.peak().at.event - 2].peak < timeline.peak().bytes);
}

TEST_CASE("Timeline: a peak within an operation is found if the memory report has it") {
    const Tensor w = half_weights();
    const bool reset = GENERATE(false, true);
    { const Array<float> more = Array<float>::empty({1 << 16}); }
    if (reset) memory::reset_peak();
    const Timeline timeline;
    const std::size_t before = memory::in_use();
    const ScopeName here("middle");
    const Tensor y = tanh(allocating("allocating", 1 << 16, w));
    const Timeline::Peak& peak = timeline.peak();
    CHECK(peak.within == reset);
    if (reset) {
        CHECK(peak.bytes == before + (1 << 16));
        CHECK(peak.op == "allocating");
        CHECK_THAT(peak.where, contains("middle"));
        CHECK_THAT(detail::to_text(peak),
                   contains(" within event 1, computing 'allocating' in timeline_test.cpp:"));
        CHECK_THAT(timeline.strip(), contains("peak " + detail::to_text(peak) + "\n"));
    } else {
        CHECK(peak.bytes == before + 1024);  // the copy and its tanh are in use
        CHECK(peak.op == "tanh");
        CHECK_THAT(detail::to_text(peak), contains(" at event 2, computing 'tanh'"));
    }
}

TEST_CASE("Timeline: a long timeline keeps the highest samples") {
    const Tensor x = constant(Array<float>::full({4}, 1));
    const Scalar small = constant(1.0);
    const Timeline timeline;
    const std::size_t half = Timeline::most_samples * 5 / 4;
    for (std::size_t i = 0; i < half; ++i) small + small;
    const Tensor big = x + x;
    { const Tensor bigger = big + big; }
    for (std::size_t i = 0; i < half; ++i) small + small;
    const std::vector<Timeline::Sample>& samples = timeline.samples();
    CHECK(timeline.events() == 2 * half + 2);
    CHECK(samples.size() <= Timeline::most_samples);
    CHECK(samples.size() >= Timeline::most_samples / 2);
    CHECK(std::ranges::is_sorted(samples, {}, &Timeline::Sample::event));
    const auto top = std::ranges::max_element(samples, {}, &Timeline::Sample::in_use);
    CHECK(top->event == half + 2);
    CHECK(top->in_use == timeline.peak().bytes);
    CHECK(timeline.peak().op == "add");
    for (std::size_t i = 0; i < samples.size(); ++i) {  // a sample represents four events
        CHECK(samples[i].event > 4 * i);
        CHECK(samples[i].event <= 4 * (i + 1));
    }
    CHECK_THAT(timeline.strip({.columns = 10}),
               contains("──────────\n" + std::to_string(timeline.events()) + " events\n"));
    CHECK_THAT(timeline.strip({.columns = 10, .ascii = true}), contains("+----------\n"));
    CHECK(timeline.svg().find("gone back") == std::string::npos);
}

TEST_CASE("highest: each stretch of samples is represented by its highest sample") {
    const std::uint64_t seed = GENERATE(range(1u, 51u));
    CAPTURE(seed);
    Random random(seed);
    std::vector<Timeline::Sample> samples(static_cast<std::size_t>(random.whole(1, 200)));
    for (std::size_t i = 0; i < samples.size(); ++i) {
        samples[i].event = i + 1;
        samples[i].in_use = static_cast<std::size_t>(random.whole(0, 1000));
    }
    const auto count = static_cast<std::size_t>(random.whole(1, 100));
    const std::vector<Timeline::Sample> shown = detail::highest(samples, count);
    REQUIRE(shown.size() == std::min(count, samples.size()));
    std::size_t next = 0;  // no sample of a stretch is higher than the sample that is shown for this stretch
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const std::size_t end = samples.size() * (i + 1) / shown.size();
        for (; next < end; ++next) CHECK(samples[next].in_use <= shown[i].in_use);
        CHECK(shown[i].event <= end);
        CHECK(shown[i].event > samples.size() * i / shown.size());
    }
    CHECK(next == samples.size());
}

TEST_CASE("Timeline::strip: the height is the bytes in use, rounded to an eighth of a row") {
    const bool ascii = GENERATE(false, true);
    const Tensor w = half_weights();
    memory::reset_peak();
    const Timeline timeline;
    sum(tanh(tanh(w * 2))).backward();
    const std::string strip = timeline.strip({.columns = 40, .ascii = ascii});
    const std::vector<std::string> lines = lines_of(strip);
    REQUIRE(lines.size() == 9);
    const std::size_t events = timeline.samples().size(), stretch = 40 / events;
    const std::string top = detail::format_bytes(timeline.peak().bytes);
    CHECK(lines[0].rfind(top + (ascii ? " |" : " │"), 0) == 0);
    CHECK_THAT(lines[5], contains(std::string(" 0 B") + (ascii ? " |" : " │")));
    const std::vector<std::string> letters =
        ascii ? std::vector<std::string>{".", ":", "#"}
              : std::vector<std::string>{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::vector<double> rows(events * stretch);  // the height of each column
    for (int line = 0; line < 6; ++line) {
        std::string rest = lines[static_cast<std::size_t>(line)].substr(top.size() + (ascii ? 2 : 4));
        for (std::size_t column = 0; !rest.empty(); ++column) {
            REQUIRE(column < rows.size());
            std::size_t length = 1;
            for (std::size_t i = 0; i < letters.size(); ++i)
                if (rest.rfind(letters[i], 0) == 0) {
                    rows[column] += static_cast<double>(i + 1) / static_cast<double>(letters.size());
                    length = letters[i].size();
                }
            rest.erase(0, length);
        }
    }
    const double step = ascii ? 1.0 / 3 : 1.0 / 8;
    for (std::size_t column = 0; column < rows.size(); ++column) {
        const double truth = 6 * static_cast<double>(timeline.samples()[column / stretch].in_use) /
                             static_cast<double>(timeline.peak().bytes);
        CHECK(std::abs(rows[column] - truth) <= step + 1e-9);
    }
    std::string directions(4 * stretch, '>');
    directions += std::string(4 * stretch, '<');
    CHECK(lines[6] == std::string(top.size(), ' ') + (ascii ? " +" : " └") + directions);
    CHECK(lines[7] == "8 events: > computed, < gone back through");
    CHECK(lines[8] == "peak " + detail::to_text(timeline.peak()));
    if (ascii) CHECK(std::ranges::all_of(strip, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST_CASE("Timeline::svg: the classes are stacked to scale, and the picture is well-formed") {
    const Tensor w = half_weights();
    memory::reset_peak();
    const Timeline timeline;
    sum(allocating("<allocating> & \"co\"", 1 << 12, tanh(w * 2))).backward();
    const std::string svg = timeline.svg("Bytes <live> & more");
    CHECK(xml_fault(svg) == "");
    CHECK_THAT(svg, contains("<title id=\"t-title\">Bytes &lt;live&gt; &amp; more</title>"));
    CHECK_THAT(svg, contains("gone back through</text>"));
    CHECK_THAT(svg, contains("computing '&lt;allocating&gt; &amp; &quot;co&quot;'"));
    const std::regex area("<polygon points=\"([^\"]*)\" class=\"t-class([0-3])\"/>");
    std::vector<std::size_t> below(timeline.samples().size());
    int areas = 0;
    std::ptrdiff_t last = 0;
    for (auto it = std::sregex_iterator(svg.begin(), svg.end(), area); it != std::sregex_iterator(); ++it) {
        const auto memory_class = static_cast<std::size_t>(std::stoi((*it)[2]));
        std::istringstream points((*it)[1]);
        std::vector<std::pair<int, int>> corners;
        char comma = 0;
        for (int x = 0, y = 0; points >> x >> comma >> y;) corners.emplace_back(x, y);
        REQUIRE(corners.size() % 4 == 0);  // the outline of a stretch has two upper and two lower corners
        std::size_t stretch = 0;
        for (std::size_t i = 0; i < below.size(); ++i) {
            const auto y = [&](std::size_t bytes) {
                return 412 - 312 * static_cast<double>(bytes) / static_cast<double>(timeline.peak().bytes);
            };
            const int x = 136 + static_cast<int>(792 * i / below.size());
            while (corners[2 * stretch + 1].first <= x) REQUIRE(++stretch < corners.size() / 4);
            const auto &over = corners[2 * stretch], &under = corners[corners.size() - 1 - 2 * stretch];
            CHECK(over.first <= x);
            CHECK(over.first == under.first);
            CHECK(std::abs(under.second - y(below[i])) <= 0.51);
            below[i] += timeline.samples()[i].in_use_by[memory_class];
            CHECK(std::abs(over.second - y(below[i])) <= 0.51);
            CHECK(corners[2 * stretch + 1].second == over.second);
        }
        ++areas;
        last = it->position();
    }
    CHECK(areas == memory::detail::memory_classes);
    CHECK(svg.find("class=\"t-peak\"") > static_cast<std::size_t>(last));  // the peak is drawn over the areas
    const Folder folder;
    timeline.write(folder / "live.svg", "Bytes <live> & more");
    CHECK(folder.files() == 1);
    CHECK_THROWS_WITH(timeline.write(folder / "live.png"), contains("use a name that ends in .svg"));
}

TEST_CASE("Timeline::svg: a named part has its own band, and the total height stays the same") {
    const auto height = [](const std::string& svg, const std::string& style) {
        const std::regex area("<polygon points=\"([^\"]*)\" class=\"" + style + "\"/>");
        std::smatch found;
        REQUIRE(std::regex_search(svg, found, area));
        std::istringstream points(found[1]);
        int first_x = 0, over = 0, x = 0, y = 0;
        char comma = 0;
        points >> first_x >> comma >> over;
        while (points >> x >> comma >> y) continue;
        CHECK(x == first_x);
        return y - over;  // the height at the first event
    };
    const auto w = parameter(Array<float>::full({1 << 10}, 0.5f));
    memory::reset_peak();
    const Array<float> held = Array<float>::full({1 << 12}, 1.0f);
    const Timeline timeline;
    sum(tanh(w * 2)).backward();
    const std::size_t bytes = held.storage()->bytes;
    const std::string plain = timeline.svg(), named = timeline.svg("Live bytes", {"held <always>", bytes});
    CHECK(plain.find("held") == std::string::npos);
    CHECK(plain.find("class=\"t-named\"") == std::string::npos);
    CHECK(xml_fault(named) == "");
    CHECK_THAT(named, contains("held &lt;always&gt;</text>"));
    const double unit = 312.0 / static_cast<double>(timeline.peak().bytes);
    CHECK(std::abs(height(named, "t-named") - unit * static_cast<double>(bytes)) <= 1);
    CHECK(std::abs(height(named, "t-named") + height(named, "t-class3") - height(plain, "t-class3")) <= 1);
    CHECK(height(named, "t-class0") == height(plain, "t-class0"));
}

TEST_CASE("Timeline: one without events throws an Error") {
    const Timeline timeline;
    const char* const empty =
        "[timeline] no operation was recorded during its lifetime; construct it before the operations";
    CHECK_THROWS_WITH(timeline.svg(), empty);
    CHECK_THROWS_WITH(timeline.strip(), empty);
    CHECK_THROWS_WITH(timeline.strip({.columns = 0}), "[timeline] cannot draw 0 columns; pass at least 1");
    CHECK_THROWS_WITH(timeline.strip({.columns = 1}), empty);
}
