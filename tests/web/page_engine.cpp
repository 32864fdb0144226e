// Runs the engine of docs/classroom.html as a native program. Answers each input line with a line of JSON.
#include <bit>
#include <iostream>
#include <sstream>
#include <string>

#include "tally/tally.hpp"
#include "web/engine.hpp"

namespace {

template <class T> std::vector<T> read(std::istream& in) {
    std::size_t count = 0;
    in >> count;
    std::vector<T> all(count);
    for (T& one : all) {
        std::uint32_t bits = 0;  // of a float or an int
        in >> bits;
        one = std::bit_cast<T>(bits);
    }
    return all;
}

std::string answer(std::istream& in) {
    std::string what;
    in >> what;
    if (what == "toy") {
        const auto x = read<float>(in), w = read<float>(in);
        const auto cuts = read<int>(in);
        int divide = 0;
        in >> divide;
        return tally::web::toy(x, w, cuts, static_cast<tally::web::Divide>(divide));
    }
    if (what == "race") {
        const auto x = read<float>(in);
        const auto cuts = read<int>(in);
        int divide = 0, steps = 0;
        float rate = 0;
        in >> divide >> rate >> steps;
        return tally::web::race(x, cuts, static_cast<tally::web::Divide>(divide), rate, steps);
    }
    if (what == "batch_memory") return tally::web::batch_memory(read<int>(in));
    if (what == "chain") {
        const auto starts = read<int>(in);
        return tally::web::chain(std::vector<bool>(starts.begin(), starts.end()));
    }
    if (what == "chain_fit" || what == "chain_revolve") {
        int layers = 0, limit = 0;  // bytes or snapshots
        in >> layers >> limit;
        return what == "chain_fit" ? tally::web::chain_fit(layers, limit)
                                   : tally::web::chain_revolve(layers, limit);
    }
    std::uint64_t seed = 0;
    int size = 0, draws = 0;
    in >> seed >> size >> draws;
    return tally::web::noise(seed, size, draws);
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream request(line);
        try {
            std::cout << answer(request) << "\n";
        } catch (const tally::Error& error) {
            std::cout << "error: " << error.what() << "\n";
        }
    }
}
