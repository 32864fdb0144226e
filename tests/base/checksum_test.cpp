// Tests that the checksum depends on each word, each bit and the length. The checksum also detects changes of
// two words that do not change the sum of all words.
#include "tally/base/checksum.hpp"

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "catch.hpp"

namespace tally::test {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes drawn(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random(seed);
    Bytes bytes(count);
    for (unsigned char& each : bytes) each = static_cast<unsigned char>(random());
    return bytes;
}

std::uint64_t sum_of(const Bytes& bytes) { return detail::checksum_of(bytes.data(), bytes.size()); }

// Checks that the checksum changes if the function `change` changes two words of the data.
template <class Change> void expect_pairs_seen(const Change& change) {
    const Bytes bytes = drawn(7, 3000);
    for (std::size_t first = 0; first < 40; ++first)
        for (const std::size_t apart : {4U, 64U, 128U, 256U, 512U, 1024U}) {
            Bytes changed = bytes;
            change(changed.data() + 4 * first, changed.data() + 4 * first + apart);
            INFO("word " << first << " and the one " << apart << " bytes behind it");
            CHECK((changed == bytes) == (sum_of(changed) == sum_of(bytes)));
        }
}

}  // namespace

TEST_CASE("checksum: changes with each single bit at every length") {
    for (const std::size_t length : {1U, 3U, 4U, 63U, 64U, 65U, 255U, 256U, 257U, 700U}) {
        const Bytes bytes = drawn(length, length);
        std::set<std::uint64_t> sums{sum_of(bytes)};
        for (std::size_t bit = 0; bit < 8 * length; ++bit) {
            Bytes changed = bytes;
            changed[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
            sums.insert(sum_of(changed));
        }
        INFO(length << " bytes");
        CHECK(sums.size() == 8 * length + 1);
    }
}

TEST_CASE("checksum: a sampled checksum of a large buffer reads every eighth block of 32 KiB") {
    const auto sample_of = [](const Bytes& bytes, unsigned sample) {
        return detail::sampled_checksum_of(bytes.data(), bytes.size(), sample);
    };
    const Bytes small = drawn(1, 262144), large = drawn(2, 9 * 32768 + 1);
    for (unsigned sample = 0; sample < 8; ++sample) {
        CHECK(sample_of(small, sample) == sum_of(small));
        CHECK(sample_of(large, sample) == sample_of(large, sample + 8));
        for (std::size_t at = 0; at < large.size(); at += 8192) {
            Bytes changed = large;
            changed[at] ^= 1;
            CHECK((sample_of(changed, sample) != sample_of(large, sample)) == (at / 32768 % 8 == sample));
        }
        Bytes longer = large;
        longer.push_back(0);
        CHECK(sample_of(longer, sample) != sample_of(large, sample));
    }
}

TEST_CASE("checksum: changes with the length, also for zeros") {
    std::set<std::uint64_t> sums;
    for (std::size_t length = 0; length < 600; ++length) sums.insert(sum_of(Bytes(length)));
    CHECK(sums.size() == 600);
}

TEST_CASE("checksum: two signs, two factors of two or two swapped words do not cancel") {
    expect_pairs_seen([](unsigned char* a, unsigned char* b) { a[3] ^= 0x80, b[3] ^= 0x80; });
    expect_pairs_seen([](unsigned char* a, unsigned char* b) { a[2] ^= 0x80, b[2] ^= 0x80; });
    expect_pairs_seen([](unsigned char* a, unsigned char* b) {
        unsigned char other[4];
        std::memcpy(other, a, 4), std::memcpy(a, b, 4), std::memcpy(b, other, 4);
    });
}

}  // namespace tally::test
