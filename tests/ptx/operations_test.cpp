// Compares every operation of the executor with the host's arithmetic, on special and random numbers.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "catch.hpp"
#include "ptx_testing.hpp"

namespace tally::test {
namespace {

using Word = std::uint64_t;
using Expected = std::function<Word(Word, Word, Word)>;
__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

std::set<std::string> tested;

template <class T> T as(Word bits) {
    if constexpr (sizeof(T) == 4 && std::is_floating_point_v<T>)
        return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
    else if constexpr (std::is_floating_point_v<T>)
        return std::bit_cast<T>(bits);
    else
        return static_cast<T>(bits);
}
template <class T> Word bits_of(T x) {
    if constexpr (std::is_same_v<T, float>)
        return std::bit_cast<std::uint32_t>(x);
    else if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<Word>(x);
    else
        return static_cast<std::make_unsigned_t<T>>(x);
}

template <class T> std::string name_of() {
    return (std::is_floating_point_v<T> ? "f"
            : std::is_signed_v<T>       ? "s"
                                        : "u") +
           std::to_string(8 * sizeof(T));
}
std::string bits_type(std::size_t bits) { return "b" + std::to_string(bits); }

// Returns special numbers and random ones.
template <class T> std::vector<Word> numbers() {
    using L = std::numeric_limits<T>;
    std::mt19937_64 draw(3);
    std::vector<Word> made;
    if constexpr (std::is_floating_point_v<T>) {
        for (const T x : {T(0), T(1), T(1.5), T(2.5), T(0.1), T(3e9), T(1e19), L::infinity(), L::quiet_NaN(),
                          L::denorm_min(), L::min(), L::max()})
            for (const T s : {x, -x}) made.push_back(bits_of(s));
        for (int k = 0; k < 8; ++k)
            made.push_back(bits_of(static_cast<T>(
                std::ldexp(static_cast<double>(draw()) - 9e18, static_cast<int>(draw() % 40) - 70))));
        for (int k = 0; k < 4; ++k) made.push_back(draw() >> (64 - 8 * sizeof(T)));
    } else {
        for (const Word x :
             {Word(0), Word(1), Word(2), Word(7), Word(15), Word(16), Word(31), Word(32), Word(33), Word(63),
              Word(64), Word(200), ~Word(0), bits_of(L::max()), bits_of(L::min())})
            made.push_back(bits_of(static_cast<T>(x)));
        for (int k = 0; k < 9; ++k) made.push_back(bits_of(static_cast<T>(draw())));
    }
    return made;
}

// Runs "OP d, a, b, c" for all pairs a, b. The operands have `in` bits and the result `out` bits, or is a predicate.
void check(const std::string& op, std::size_t in, std::size_t out, const std::vector<Word>& operands,
           int arguments, const Expected& expected, bool ignores_nan_bits = false, std::size_t third_in = 0) {
    tested.insert(op);
    std::vector<Word> a, b, c;
    for (const Word x : operands)
        for (const Word y : operands) {
            a.push_back(x), b.push_back(y);
            c.push_back(operands[(a.size() * 7 + a.size() / 5) % operands.size()]);
        }
    while (a.size() % 64 != 0) a.push_back(a[0]), b.push_back(b[0]), c.push_back(c[0]);
    const bool predicate = out == 1;
    if (third_in == 0) third_in = in;
    const auto reg = [](std::size_t bits) {
        return ".reg ." + bits_type(std::max<std::size_t>(bits, 16)) + " ";
    };
    std::string text =
        ptx_head +
        ".visible .entry k(\n.param .u64 p0,\n.param .u64 p1,\n.param .u64 p2,\n.param .u64 p3\n)\n{\n" +
        reg(in) + "%x, %y;\n" + reg(third_in) +
        "%z;\n.reg .b32 %r<4>;\n.reg .b64 %rd<9>;\n.reg .pred %p<2>;\n" +
        (predicate ? "" : reg(out) + "%d;\n") +
        "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\nmad.lo.u32 %r0, %r1, 64, %r0;\nmul.wide.u32 %rd8, "
        "%r0, 8;\n";
    for (int k = 0; k < 4; ++k)
        text += "ld.param.u64 %rd" + std::to_string(k) + ", [p" + std::to_string(k) + "];\nadd.s64 %rd" +
                std::to_string(k) + ", %rd" + std::to_string(k) + ", %rd8;\n";
    text += "ld.global." + bits_type(in) + " %x, [%rd0];\nld.global." + bits_type(in) +
            " %y, [%rd1];\nld.global." + bits_type(third_in) + " %z, [%rd2];\n";
    text += op + (predicate ? " %p0, %x" : " %d, %x") + (arguments > 1 ? ", %y" : "") +
            (arguments > 2 ? ", %z" : "") + ";\n";
    text += predicate ? "selp.u32 %r2, 1, 0, %p0;\nst.global.b32 [%rd3], %r2;\n"
                      : "st.global." + bits_type(out) + " [%rd3], %d;\n";
    text += "ret;\n}\n";
    Word* const results = in_global_memory(std::vector<Word>(a.size()));
    const auto findings = run_ptx(text, static_cast<unsigned>(a.size() / 64), 64,
                                  {in_global_memory(a), in_global_memory(b), in_global_memory(c), results});
    INFO(op);
    CHECK(findings.empty());
    for (std::size_t k = 0; k < a.size(); ++k) {
        const Word want = expected(a[k], b[k], c[k]);
        if (want == results[k]) continue;
        const bool both_nan =
            ignores_nan_bits &&
            (out == 32 ? std::isnan(as<float>(want)) && std::isnan(as<float>(results[k]))
                       : std::isnan(as<double>(want)) && std::isnan(as<double>(results[k])));
        if (!both_nan)
            FAIL_CHECK(op << " of " << a[k] << ", " << b[k] << ", " << c[k] << " is " << results[k]
                          << ", not " << want);
    }
}

template <class T> void check_integers() {
    constexpr std::size_t bits = 8 * sizeof(T);
    const std::string type = name_of<T>();
    const auto made = numbers<T>();
    const auto two = [&](const std::string& op, auto f) {
        check(op + "." + type, bits, bits, made, 2,
              [=](Word a, Word b, Word) { return bits_of(static_cast<T>(f(as<T>(a), as<T>(b)))); });
    };
    two("add", [](T a, T b) { return Wide(a) + b; });
    two("sub", [](T a, T b) { return Wide(a) - b; });
    two("mul.lo", [](T a, T b) { return static_cast<Word>(a) * static_cast<Word>(b); });
    two("mul.hi", [](T a, T b) {
        if constexpr (std::is_signed_v<T>)
            return Wide(a) * b >> bits;
        else
            return static_cast<UnsignedWide>(a) * b >> bits;
    });
    two("div", [](T a, T b) { return b == 0 ? Wide(-1) : Wide(a) / b; });
    two("rem", [](T a, T b) { return b == 0 ? Wide(a) : Wide(a) % b; });
    two("min", [](T a, T b) { return a < b ? a : b; });
    two("max", [](T a, T b) { return a > b ? a : b; });
    check("mad.lo." + type, bits, bits, made, 3,
          [](Word a, Word b, Word c) { return bits_of(static_cast<T>(a * b + c)); });
    if constexpr (std::is_signed_v<T>) {
        check("neg." + type, bits, bits, made, 1,
              [](Word a, Word, Word) { return bits_of(static_cast<T>(-Wide(as<T>(a)))); });
        check("abs." + type, bits, bits, made, 1, [](Word a, Word, Word) {
            return bits_of(static_cast<T>(as<T>(a) < 0 ? -Wide(as<T>(a)) : Wide(as<T>(a))));
        });
    }
    if constexpr (bits < 64) {
        const auto wide = [](Word x) { return 2 * bits == 64 ? x : x & ((Word(1) << (2 * bits % 64)) - 1); };
        check("mul.wide." + type, bits, 2 * bits, made, 2,
              [=](Word a, Word b, Word) { return wide(static_cast<Word>(Wide(as<T>(a)) * as<T>(b))); });
        check(
            "mad.wide." + type, bits, 2 * bits, made, 3,
            [=](Word a, Word b, Word c) { return wide(static_cast<Word>(Wide(as<T>(a)) * as<T>(b)) + c); },
            false, 2 * bits);
    }
}

// The distance of a shift has 32 bits, so the operands of the wide and narrow shifts differ in type.
template <class T> void check_shift(const std::string& op, std::function<Word(T, std::uint32_t)> f) {
    tested.insert(op);
    constexpr std::size_t bits = 8 * sizeof(T);
    std::vector<std::uint32_t> distances{0,  1,  7,  15, 16,  17,  31,          32,
                                         33, 63, 64, 65, 255, 256, 0x80000000u, 0xFFFFFFFFu};
    std::vector<Word> values = numbers<T>(), results(values.size() * distances.size());
    Word* const into = in_global_memory(results);
    const std::string text =
        ptx_head + ".visible .entry k(\n.param .u64 p0,\n.param .u64 p1,\n.param .u64 p2\n)\n{\n.reg ." +
        bits_type(bits) +
        " %x, %d;\n.reg .b32 %r<4>;\n.reg .b64 %rd<9>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
        "ld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\nld.param.u64 %rd2, [p2];\n"
        "mul.wide.u32 %rd3, %r1, 8;\nadd.s64 %rd0, %rd0, %rd3;\nmul.wide.u32 %rd3, %r0, 4;\nadd.s64 %rd1, "
        "%rd1, %rd3;\n"
        "mad.lo.u32 %r2, %r1, 16, %r0;\nmul.wide.u32 %rd3, %r2, 8;\nadd.s64 %rd2, %rd2, %rd3;\n"
        "ld.global." +
        bits_type(bits) + " %x, [%rd0];\nld.global.b32 %r3, [%rd1];\n" + op + " %d, %x, %r3;\nst.global." +
        bits_type(bits) + " [%rd2], %d;\nret;\n}\n";
    CHECK(run_ptx(text, static_cast<unsigned>(values.size()), 16,
                  {in_global_memory(values), in_global_memory(distances), into})
              .empty());
    for (std::size_t v = 0; v < values.size(); ++v)
        for (std::size_t d = 0; d < distances.size(); ++d) {
            INFO(op << " of " << values[v] << " by " << distances[d]);
            CHECK(into[16 * v + d] == f(as<T>(values[v]), distances[d]));
        }
}

template <class T> void check_comparisons(const std::string& type) {
    constexpr std::size_t bits = 8 * sizeof(T);
    const auto made = numbers<T>();
    const auto one = [&](const std::string& name, auto f) {
        check("setp." + name + "." + type, bits, 1, made, 2,
              [=](Word a, Word b, Word) { return Word(f(as<T>(a), as<T>(b))); });
    };
    const auto is_nan = [](T a, T b) { return a != a || b != b; };
    one("eq", [](T a, T b) { return a == b; });
    one("ne", [=](T a, T b) { return a != b && !is_nan(a, b); });
    if (type[0] == 'b') return;
    one("lt", [](T a, T b) { return a < b; });
    one("le", [](T a, T b) { return a <= b; });
    one("gt", [](T a, T b) { return a > b; });
    one("ge", [](T a, T b) { return a >= b; });
    if (type[0] != 'f') return;
    one("equ", [=](T a, T b) { return a == b || is_nan(a, b); });
    one("neu", [](T a, T b) { return !(a == b); });
    one("ltu", [](T a, T b) { return !(a >= b); });
    one("leu", [](T a, T b) { return !(a > b); });
    one("gtu", [](T a, T b) { return !(a <= b); });
    one("geu", [](T a, T b) { return !(a < b); });
    one("num", [=](T a, T b) { return !is_nan(a, b); });
    one("nan", is_nan);
}

template <class T> void check_floats() {
    constexpr std::size_t bits = 8 * sizeof(T);
    const std::string type = name_of<T>();
    const auto made = numbers<T>();
    const auto two = [&](const std::string& op, auto f) {
        check(
            op + "." + type, bits, bits, made, 2,
            [=](Word a, Word b, Word) { return bits_of(static_cast<T>(f(as<T>(a), as<T>(b)))); }, true);
    };
    const auto one = [&](const std::string& op, auto f) {
        check(
            op + "." + type, bits, bits, made, 1,
            [=](Word a, Word, Word) { return bits_of(static_cast<T>(f(as<T>(a)))); }, true);
    };
    two("add.rn", [](T a, T b) { return a + b; });
    two("sub.rn", [](T a, T b) { return a - b; });
    two("mul.rn", [](T a, T b) { return a * b; });
    for (const std::string op : {"add.", "sub.", "mul."})  // ptxas may contract these
        CHECK(ptx::operation(op + type) == nullptr);
    two("div.rn", [](T a, T b) { return a / b; });
    two("copysign", [](T a, T b) { return std::copysign(b, a); });  // the sign of a
    const auto smaller = [](T a, T b) { return a < b || (a == b && std::signbit(a)); };
    two("min", [=](T a, T b) { return a != a ? b : b != b ? a : smaller(a, b) ? a : b; });
    two("max", [=](T a, T b) { return a != a ? b : b != b ? a : smaller(a, b) ? b : a; });
    check(
        "fma.rn." + type, bits, bits, made, 3,
        [](Word a, Word b, Word c) { return bits_of(std::fma(as<T>(a), as<T>(b), as<T>(c))); }, true);
    one("neg", [](T a) { return -a; });
    one("abs", [](T a) { return std::abs(a); });
    one("sqrt.rn", [](T a) { return std::sqrt(a); });
    one("rcp.rn", [](T a) { return 1 / a; });
    const auto to_even = [](T a) {
        const T below = std::floor(a), rest = a - below;
        return std::copysign(
            rest > T(0.5) || (rest == T(0.5) && std::fmod(below, T(2)) != 0) ? below + 1 : below, a);
    };
    one("cvt.rni." + type, to_even);
    one("cvt.rzi." + type, [](T a) { return std::trunc(a); });
    one("cvt.rmi." + type, [](T a) { return std::floor(a); });
    one("cvt.rpi." + type, [](T a) { return std::ceil(a); });
    const auto integers = [&]<class To>(To) {
        const auto to = [&](const std::string& round, auto f) {
            check("cvt." + round + "." + name_of<To>() + "." + type, bits, 8 * sizeof(To), made, 1,
                  [=](Word word, Word, Word) {
                      const long double x = static_cast<long double>(f(as<T>(word)));
                      if (x != x)
                          return bits < 64 && sizeof(To) < 8 ? Word(0) : Word(1) << (8 * sizeof(To) - 1);
                      using L = std::numeric_limits<To>;
                      return bits_of(x >= static_cast<long double>(L::max())   ? L::max()
                                     : x <= static_cast<long double>(L::min()) ? L::min()
                                                                               : static_cast<To>(x));
                  });
        };
        to("rni", to_even);
        to("rzi", [](T a) { return std::trunc(a); });
        to("rmi", [](T a) { return std::floor(a); });
        to("rpi", [](T a) { return std::ceil(a); });
        check("cvt.rn." + type + "." + name_of<To>(), 8 * sizeof(To), bits, numbers<To>(), 1,
              [](Word a, Word, Word) { return bits_of(static_cast<T>(as<To>(a))); });
    };
    integers(std::int16_t()), integers(std::int32_t()), integers(std::int64_t());
    integers(std::uint16_t()), integers(std::uint32_t()), integers(std::uint64_t());
}

template <class T> void check_bits() {
    constexpr std::size_t bits = 8 * sizeof(T);
    const std::string type = bits_type(bits);
    const auto made = numbers<T>();
    const auto mask = [](Word x) { return x & static_cast<Word>(static_cast<T>(-1)); };
    check("and." + type, bits, bits, made, 2, [](Word a, Word b, Word) { return a & b; });
    check("or." + type, bits, bits, made, 2, [](Word a, Word b, Word) { return a | b; });
    check("xor." + type, bits, bits, made, 2, [](Word a, Word b, Word) { return a ^ b; });
    check("not." + type, bits, bits, made, 1, [=](Word a, Word, Word) { return mask(~a); });
    check("clz." + type, bits, bits, made, 1, [](Word a, Word, Word) {
        Word zeros = 0;
        for (std::size_t k = bits; k-- > 0 && !(a >> k & 1);) ++zeros;
        return zeros;
    });
    for (const char* kind : {"b", "u", "s", "f"})
        check("mov." + (kind + std::to_string(bits)), bits, bits, made, 1,
              [](Word a, Word, Word) { return a; });
    check_shift<T>("shl." + type,
                   [=](T a, std::uint32_t by) { return by >= bits ? Word(0) : mask(Word(a) << by); });
    check_shift<T>("shr." + type, [](T a, std::uint32_t by) { return by >= bits ? Word(0) : Word(a) >> by; });
    check_shift<T>("shr.u" + std::to_string(bits),
                   [](T a, std::uint32_t by) { return by >= bits ? Word(0) : Word(a) >> by; });
    using Signed = std::make_signed_t<T>;
    check_shift<Signed>("shr.s" + std::to_string(bits), [](Signed a, std::uint32_t by) {
        Wide result = a;
        for (std::uint32_t k = 0; k < std::min<std::uint32_t>(by, 64); ++k)
            result = result >= 0 ? result / 2 : (result - 1) / 2;
        return bits_of(static_cast<Signed>(result));
    });
    check_comparisons<T>(type);
}

template <class From, class To> void check_conversion() {
    check("cvt." + name_of<To>() + "." + name_of<From>(), 8 * sizeof(From), 8 * sizeof(To), numbers<From>(),
          1, [](Word a, Word, Word) { return bits_of(static_cast<To>(as<From>(a))); });
}
template <class From> void check_conversions() {
    check_conversion<From, std::int8_t>(), check_conversion<From, std::int16_t>(),
        check_conversion<From, std::int32_t>(), check_conversion<From, std::int64_t>();
    check_conversion<From, std::uint8_t>(), check_conversion<From, std::uint16_t>(),
        check_conversion<From, std::uint32_t>(), check_conversion<From, std::uint64_t>();
}

}  // namespace

TEST_CASE("PTX: every operation agrees with the host's arithmetic") {
    check_integers<std::int16_t>(), check_integers<std::int32_t>(), check_integers<std::int64_t>();
    check_integers<std::uint16_t>(), check_integers<std::uint32_t>(), check_integers<std::uint64_t>();
    check_comparisons<std::int16_t>("s16"), check_comparisons<std::int32_t>("s32"),
        check_comparisons<std::int64_t>("s64");
    check_comparisons<std::uint16_t>("u16"), check_comparisons<std::uint32_t>("u32"),
        check_comparisons<std::uint64_t>("u64");
    check_bits<std::uint16_t>(), check_bits<std::uint32_t>(), check_bits<std::uint64_t>();
    check_floats<float>(), check_floats<double>();
    check_comparisons<float>("f32"), check_comparisons<double>("f64");
    check_conversions<std::int8_t>(), check_conversions<std::int16_t>(), check_conversions<std::int32_t>(),
        check_conversions<std::int64_t>();
    check_conversions<std::uint8_t>(), check_conversions<std::uint16_t>(), check_conversions<std::uint32_t>(),
        check_conversions<std::uint64_t>();
    check(
        "cvt.f64.f32", 32, 64, numbers<float>(), 1,
        [](Word a, Word, Word) { return bits_of(static_cast<double>(as<float>(a))); }, true);
    check(
        "cvt.rn.f32.f64", 64, 32, numbers<double>(), 1,
        [](Word a, Word, Word) { return bits_of(static_cast<float>(as<double>(a))); }, true);
    for (const bool left : {true, false})
        for (const bool clamps : {true, false})
            check(std::string("shf.") + (left ? "l." : "r.") + (clamps ? "clamp" : "wrap") + ".b32", 32, 32,
                  numbers<std::uint32_t>(), 3, [=](Word low, Word high, Word by) {
                      const Word n = clamps ? std::min<Word>(by, 32) : by % 32;
                      const Word joined = n == 0 ? (left ? high : low)
                                          : left ? high << n | low >> (32 - n)
                                                 : low >> n | high << (32 - n);
                      return joined & 0xFFFFFFFF;
                  });
    std::string untested;
    for (const std::string& name : ptx::operations()) {
        static const std::set<std::string> in_other_tests{"ld",   "st",  "cvta", "copy", "pack", "unpack",
                                                          "selp", "bfi", "addc", "subc", "madc"};
        const bool is_elsewhere = in_other_tests.contains(name.substr(0, name.find('.'))) ||
                                  name.find(".pred") != name.npos || name.find(".cc.") != name.npos ||
                                  name.find("mad.hi") == 0;
        if (!is_elsewhere && !tested.contains(name)) untested += name + " ";
    }
    CHECK(untested == "");
}

// Runs instructions in one thread, and returns %rd0 and %rd1.
static std::pair<Word, Word> after(const std::string& instructions, Word a = 0, Word b = 0) {
    Word* const results = in_global_memory(std::vector<Word>{a, b});
    const std::string text = ptx_head +
                             ".visible .entry k(\n.param .u64 p0\n)\n{\n.reg .b64 %rd<9>;\n.reg .b32 "
                             "%r<9>;\n.reg .pred %p<9>;\nld.param.u64 %rd8, [p0];\n"
                             "ld.global.u64 %rd0, [%rd8];\nld.global.u64 %rd1, [%rd8+8];\n" +
                             instructions +
                             "st.global.u64 [%rd8], %rd0;\nst.global.u64 [%rd8+8], %rd1;\nret;\n}\n";
    const auto findings = run_ptx(text, 1, 1, {results});
    INFO((findings.empty() ? "" : findings[0]));
    CHECK(findings.empty());
    return {results[0], results[1]};
}

TEST_CASE("PTX: carries extend sums, differences and products to more bits") {
    std::mt19937_64 draw(5);
    for (int k = 0; k < 200; ++k) {
        const Word a = k % 5 == 0 ? ~Word(0) : draw(), b = k % 7 == 0 ? ~Word(0) : draw();
        const std::string halves = "mov.b64 {%r0, %r1}, %rd0;\nmov.b64 {%r2, %r3}, %rd1;\n",
                          join = "mov.b64 %rd0, {%r4, %r5};\n";
        CHECK(after(halves + "add.cc.u32 %r4, %r0, %r2;\naddc.u32 %r5, %r1, %r3;\n" + join, a, b).first ==
              a + b);
        CHECK(after(halves + "sub.cc.u32 %r4, %r0, %r2;\nsubc.u32 %r5, %r1, %r3;\n" + join, a, b).first ==
              a - b);
        CHECK(after("add.cc.u64 %rd2, %rd0, %rd1;\naddc.u64 %rd0, 0, 0;\n", a, b).first ==
              (a + b < a ? 1u : 0u));
        const auto product = after(
            halves +
                "mul.lo.u32 %r4, %r0, %r2;\nmul.hi.u32 %r5, %r0, %r2;\nmad.lo.cc.u32 %r5, %r0, %r3, %r5;\n"
                "madc.hi.u32 %r6, %r0, %r3, 0;\nmad.lo.cc.u32 %r5, %r1, %r2, %r5;\nmadc.hi.cc.u32 %r6, %r1, "
                "%r2, %r6;\naddc.u32 %r7, 0, 0;\n"
                "mad.lo.cc.u32 %r6, %r1, %r3, %r6;\nmadc.hi.u32 %r7, %r1, %r3, %r7;\nmov.b64 %rd1, {%r6, "
                "%r7};\n" +
                join,
            a, b);
        const auto whole = static_cast<UnsignedWide>(a) * b;
        CHECK(product.first == static_cast<Word>(whole));
        CHECK(product.second == static_cast<Word>(whole >> 64));
    }
}

TEST_CASE("PTX: bits are inserted, selected and negated") {
    CHECK(after("bfi.b64 %rd0, %rd0, %rd1, 8, 16;\n", 0xABCDEF, 0x1111111111111111).first ==
          0x1111111111CDEF11);
    CHECK(after("bfi.b64 %rd0, %rd0, %rd1, 60, 16;\n", 0xFF, 0).first == 0xF000000000000000);
    CHECK(after("setp.lt.u64 %p0, %rd0, %rd1;\nnot.pred %p1, %p0;\nand.pred %p2, %p0, %p1;\nor.pred %p3, "
                "%p0, %p1;\nxor.pred %p4, %p3, %p2;\n"
                "mov.pred %p5, %p4;\nselp.b64 %rd0, 10, 20, %p5;\nselp.b64 %rd1, 30, 40, %p2;\n",
                1, 2) == std::pair<Word, Word>{10, 40});
    CHECK(
        after(
            "setp.ne.s64 %p0, %rd0, 1;\n@%p0 bra $skip;\nmov.u64 %rd1, 5;\n$skip:\n@!%p0 mov.u64 %rd0, 6;\n",
            1, 2) == std::pair<Word, Word>{6, 5});
}

TEST_CASE("PTX: loads extend signs, and vectors have several registers") {
    const auto loaded =
        after("ld.global.s8 %rd0, [%rd8];\nld.global.u16 %rd1, [%rd8+8];\n", 0xFE, 0xFFFF8001);
    CHECK(loaded == std::pair<Word, Word>{~Word(1), 0x8001});
    CHECK(after("ld.global.v2.u64 {%rd1, %rd0}, [%rd8];\n", 3, 4) == std::pair<Word, Word>{4, 3});
    CHECK(after(".local .align 8 .b8 mine[16];\nmov.u64 %rd2, mine;\nst.local.v2.u64 [%rd2], {%rd1, "
                "%rd0};\nld.local.u64 %rd0, [%rd2];\nld.local.u64 %rd1, [%rd2+8];\n",
                3, 4) == std::pair<Word, Word>{4, 3});
}

TEST_CASE("PTX: a function has its own registers, and an inner scope hides names") {
    const std::string text =
        ptx_head +
        ".func (.param .b64 result) twice_plus\n(\n.param .b64 first,\n.param .b32 second\n)\n{\n.reg .b64 "
        "%rd<3>;\n.reg .b32 %r<2>;\n"
        "ld.param.u64 %rd0, [first];\nld.param.u32 %r0, [second];\ncvt.u64.u32 %rd1, %r0;\nadd.s64 %rd2, "
        "%rd0, %rd0;\nadd.s64 %rd2, %rd2, %rd1;\n"
        "st.param.b64 [result+0], %rd2;\nret;\n}\n"
        ".visible .entry k(\n.param .u64 p0\n)\n{\n.reg .b64 %rd<9>;\n.reg .b32 %r<9>;\nld.param.u64 %rd8, "
        "[p0];\nld.global.u64 %rd1, [%rd8];\nmov.u32 %r1, 7;\n"
        "{\n.reg .b32 %r1;\nmov.u32 %r1, 100;\n}\n"
        "{\n.param .b64 param0;\nst.param.b64 [param0+0], %rd1;\n.param .b32 param1;\nst.param.b32 "
        "[param1+0], %r1;\n.param .b64 retval0;\n"
        "call.uni (retval0),\ntwice_plus,\n(\nparam0,\nparam1\n);\nld.param.b64 %rd2, "
        "[retval0+0];\n}\nst.global.u64 [%rd8], %rd2;\nret;\n}\n";
    Word* const value = in_global_memory(std::vector<Word>{20});
    CHECK(run_ptx(text, 1, 1, {value}).empty());
    CHECK(*value == 47);
}

}  // namespace tally::test
