// Exports functions to JavaScript. Each function returns JSON or an error message.
#include <emscripten/emscripten.h>

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "sources.hpp"
#include "tally/base/error.hpp"

namespace {

std::string answer;

std::string quoted(const char* words) {
    std::string text = "\"";
    for (; *words; ++words) {
        if (*words == '"' || *words == '\\') text += '\\';
        text += static_cast<unsigned char>(*words) < ' ' ? ' ' : *words;
    }
    return text + "\"";
}

template <class F> const char* answered(F f) {
    try {
        answer = f();
    } catch (const std::exception& error) {
        answer = "{\"error\":" + quoted(error.what()) + "}";
    }
    return answer.c_str();
}

template <class S> std::vector<S> copy(const S* from, int count) {
    const std::span all(from, static_cast<std::size_t>(count));
    return {all.begin(), all.end()};
}

}  // namespace

extern "C" {

EMSCRIPTEN_KEEPALIVE const char* tally_sources() { return TALLY_ENGINE_SOURCES; }

EMSCRIPTEN_KEEPALIVE const char* tally_toy(const float* x, int numbers, const float* w, const int* cuts,
                                           int parts, int divide) {
    return answered([&] {
        return tally::web::toy(copy(x, numbers), copy(w, 3), copy(cuts, parts),
                               static_cast<tally::web::Divide>(divide));
    });
}

EMSCRIPTEN_KEEPALIVE const char* tally_race(const float* x, int numbers, const int* cuts, int parts,
                                            int divide, float rate, int steps) {
    return answered([&] {
        return tally::web::race(copy(x, numbers), copy(cuts, parts), static_cast<tally::web::Divide>(divide),
                                rate, steps);
    });
}

EMSCRIPTEN_KEEPALIVE const char* tally_batch_memory(const int* sizes, int parts) {
    return answered([&] { return tally::web::batch_memory(copy(sizes, parts)); });
}

EMSCRIPTEN_KEEPALIVE const char* tally_chain(const int* starts, int layers) {
    return answered([&] { return tally::web::chain(std::vector<bool>(starts, starts + layers)); });
}

EMSCRIPTEN_KEEPALIVE const char* tally_chain_fit(int layers, int bytes) {
    return answered([&] { return tally::web::chain_fit(layers, bytes); });
}

EMSCRIPTEN_KEEPALIVE const char* tally_chain_revolve(int layers, int snapshots) {
    return answered([&] { return tally::web::chain_revolve(layers, snapshots); });
}

EMSCRIPTEN_KEEPALIVE const char* tally_noise(int seed, int size, int draws) {
    return answered([&] { return tally::web::noise(static_cast<std::uint64_t>(seed), size, draws); });
}
}
