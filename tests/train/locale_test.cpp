// Tests that messages and reports contain numbers with a decimal point in every locale.
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "autograd/support.hpp"
#include "catch.hpp"
#include "folder.hpp"
#include "tally/array/statistics.hpp"
#include "tally/autograd/ops/elementwise.hpp"
#include "tally/autograd/tensor.hpp"
#include "tally/base/text.hpp"
#include "tally/train/layers.hpp"
#include "tally/train/trainer.hpp"
#include "tally/train/training_log.hpp"

namespace tally::test {
namespace {

// Compiles a locale with decimal commas, and sets this locale until the object is destroyed.
struct WithCommas {
    Folder folder;
    bool available = false;
    WithCommas() {
        const std::string compile = "localedef -c -f UTF-8 -i de_DE '" + (folder / "de_DE.UTF-8") + "' >'" +
                                    (folder / "said") + "' 2>&1";
        if (std::system(compile.c_str()) == -1) return;
        ::setenv("LOCPATH", (folder / ".").c_str(), 1);
        available =
            std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr && *std::localeconv()->decimal_point == ',';
    }
    ~WithCommas() {
        std::setlocale(LC_NUMERIC, "C");
        ::unsetenv("LOCPATH");
    }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("messages and reports: numbers have a decimal point when the locale has a decimal comma") {
    const WithCommas german;
    if (!german.available) TALLY_SKIP("localedef cannot make the locale de_DE here");
    CHECK(std::to_string(1.5) == "1,500000");  // std::to_string depends on the locale
    const Tensor x = parameter({1.f, 2.f});
    CHECK(message_of([&] { (void)clamp(x, std::nan(""), 1.5); }) ==
          "[clamp] the bounds must be numbers; they are nan and 1.5");
    CHECK(message_of([] { (void)Dropout<float>(1.5, 1); }) ==
          "[dropout] the probability must be between 0 and 1; it is 1.5");
    detail::Progress progress;
    progress.last.sum = 4.824;
    progress.last.count = 5;
    progress.samples_per_second = 12.5;
    CHECK(has(detail::progress_line(progress), "loss 0.9648 = 4.824/5, 12.5/s"));
    Trainer<double>::Summary summary;
    summary.samples = 3;
    summary.seconds = 1.5;
    CHECK(has(to_string(summary), "3 samples in 1.5 s: 2 samples/s"));
    CHECK(detail::format_bytes(1536) == "1.5 KiB");
    std::vector<Trainer<double>::Record> records(2);
    records[0].sum = 1.5, records[0].count = 1, records[0].update = 1;
    records[1].sum = 0.5, records[1].count = 1, records[1].update = 2;
    const std::string svg = detail::loss_curve_svg(records, "loss");
    CHECK(has(svg, "from 1.5 at update 1 to 0.5 at update 2"));
    CHECK(!has(svg, ">0,"));
}

}  // namespace tally::test
