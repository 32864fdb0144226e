// Computes the operations of PTX. All arithmetic is IEEE 754, rounded to nearest, as the PTX manual defines it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "machine.hpp"

namespace tally::ptx {

namespace {

template <class T> T value(std::uint64_t slot) {
    if constexpr (std::is_same_v<T, float>)
        return std::bit_cast<float>(static_cast<std::uint32_t>(slot));
    else if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<double>(slot);
    else
        return static_cast<T>(slot);
}

// Returns the slot of a result. Signs are extended. A 32-bit NaN has the bits that the manual requires.
template <class T> using Signed64Or = std::conditional_t<std::is_signed_v<T>, std::int64_t, T>;
template <class T> std::uint64_t slot(T result) {
    if constexpr (std::is_same_v<T, float>)
        return std::isnan(result) ? 0x7FFFFFFFu : std::bit_cast<std::uint32_t>(result);
    else if constexpr (std::is_same_v<T, double>)
        return std::bit_cast<std::uint64_t>(result);
    else
        return static_cast<std::uint64_t>(static_cast<Signed64Or<T>>(result));
}

template <class T> using Bits = std::make_unsigned_t<T>;
// Returns an integer type with twice as many bits.
template <class T> struct TwiceAs;
template <> struct TwiceAs<std::int16_t> { using type = std::int32_t; };
template <> struct TwiceAs<std::int32_t> { using type = std::int64_t; };
template <> struct TwiceAs<std::int64_t> { __extension__ using type = __int128; };
template <> struct TwiceAs<std::uint16_t> { using type = std::uint32_t; };
template <> struct TwiceAs<std::uint32_t> { using type = std::uint64_t; };
template <> struct TwiceAs<std::uint64_t> { __extension__ using type = unsigned __int128; };
template <class T> using Twice = typename TwiceAs<T>::type;

// ---- arithmetic: each struct has of(), for integers (which wrap) or for floating-point numbers ----

struct Add {
    template <class T> static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return a + b;
        else
            return static_cast<T>(Bits<T>(a) + Bits<T>(b));
    }
};
struct Sub {
    template <class T> static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return a - b;
        else
            return static_cast<T>(Bits<T>(a) - Bits<T>(b));
    }
};
struct Mul {
    template <class T> static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return a * b;
        else
            return static_cast<T>(static_cast<Twice<Bits<T>>>(Bits<T>(a)) * Bits<T>(b));
    }
};
struct MulHigh {
    template <class T> static T of(T a, T b) {
        return static_cast<T>(Twice<T>(a) * Twice<T>(b) >> (8 * sizeof(T)));
    }
};
struct Div {
    template <class T> static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>) {
            return a / b;
        } else {
            if (b == 0) return static_cast<T>(~Bits<T>(0));  // the manual defines no result
            if constexpr (std::is_signed_v<T>)
                if (b == -1) return static_cast<T>(Bits<T>(0) - Bits<T>(a));
            return static_cast<T>(a / b);
        }
    }
};
struct Rem {
    template <class T> static T of(T a, T b) {
        if (b == 0) return a;  // the manual defines no result
        if constexpr (std::is_signed_v<T>)
            if (b == -1) return 0;
        return static_cast<T>(a % b);
    }
};
struct CopySign {  // the sign of a and the size of b
    template <class T> static T of(T a, T b) { return std::copysign(b, a); }
};
struct Min {
    template <class T> static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return std::isnan(a)   ? b
                   : std::isnan(b) ? a
                   : a == b        ? (std::signbit(a) ? a : b)
                                   : std::min(a, b);
        else
            return std::min(a, b);
    }
};
struct Max {
    template <class T> static T of(T a, T b) {
        if constexpr (std::is_floating_point_v<T>)
            return std::isnan(a)   ? b
                   : std::isnan(b) ? a
                   : a == b        ? (std::signbit(a) ? b : a)
                                   : std::max(a, b);
        else
            return std::max(a, b);
    }
};
struct And {
    template <class T> static T of(T a, T b) { return static_cast<T>(a & b); }
};
struct Or {
    template <class T> static T of(T a, T b) { return static_cast<T>(a | b); }
};
struct Xor {
    template <class T> static T of(T a, T b) { return static_cast<T>(a ^ b); }
};

struct Neg {
    template <class T> static T of(T a) {
        if constexpr (std::is_floating_point_v<T>)
            return -a;
        else
            return static_cast<T>(Bits<T>(0) - Bits<T>(a));
    }
};
struct Abs {
    template <class T> static T of(T a) {
        if constexpr (std::is_floating_point_v<T>)
            return std::fabs(a);
        else
            return a < 0 ? Neg::of(a) : a;
    }
};
struct Sqrt {
    template <class T> static T of(T a) { return std::sqrt(a); }
};
struct Reciprocal {
    template <class T> static T of(T a) { return 1 / a; }
};
struct Not {
    template <class T> static T of(T a) { return static_cast<T>(~a); }
};

template <class T, class F> void unary(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = slot<T>(F::of(value<T>(t.r[i.a])));
}
template <class T, class F> void binary(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = slot<T>(F::of(value<T>(t.r[i.a]), value<T>(t.r[i.b])));
}
template <class T> void fma(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = slot<T>(std::fma(value<T>(t.r[i.a]), value<T>(t.r[i.b]), value<T>(t.r[i.c])));
}
template <class T> void mad_low(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = slot<T>(Add::of(Mul::of(value<T>(t.r[i.a]), value<T>(t.r[i.b])), value<T>(t.r[i.c])));
}
// Shifts a 64-bit number, whose halves are b and a, and returns its upper (left) or lower (right) half.
template <bool left, bool clamps> void funnel_shift(Machine&, Thread& t, const Instruction& i) {
    const std::uint64_t both = t.r[i.b] << 32 | (t.r[i.a] & 0xFFFFFFFF);
    const auto by = static_cast<std::uint32_t>(t.r[i.c]), n = clamps ? std::min(by, 32u) : by & 31;
    t.r[i.d] = static_cast<std::uint32_t>(left ? both << n >> 32 : both >> n);
}
template <class T> void mul_wide(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = slot<Twice<T>>(Twice<T>(value<T>(t.r[i.a])) * value<T>(t.r[i.b]));
}
template <class T> void mad_wide(Machine&, Thread& t, const Instruction& i) {
    using Wide = Twice<T>;
    t.r[i.d] = slot<Wide>(
        Add::of(static_cast<Wide>(Wide(value<T>(t.r[i.a])) * value<T>(t.r[i.b])), value<Wide>(t.r[i.c])));
}

// Computes a + b, a - b, or a half of a * b plus c, with the carry (or borrow) of the instruction before and for the
// one after. `T` is unsigned.
enum class Part { sum, difference, low, high };
template <class T, Part part, bool takes, bool gives>
void with_carry(Machine&, Thread& t, const Instruction& i) {
    const T a = value<T>(t.r[i.a]), b = value<T>(t.r[i.b]);
    const T carry = takes && t.carry ? 1 : 0;
    Twice<T> sum;
    if constexpr (part == Part::sum)
        sum = Twice<T>(a) + b + carry;
    else if constexpr (part == Part::difference)
        sum = Twice<T>(a) - b - carry;
    else if constexpr (part == Part::low)
        sum = Twice<T>(Mul::of(a, b)) + value<T>(t.r[i.c]) + carry;
    else
        sum = Twice<T>(MulHigh::of(a, b)) + value<T>(t.r[i.c]) + carry;
    if constexpr (gives) t.carry = sum >> (8 * sizeof(T)) != 0;
    t.r[i.d] = static_cast<T>(sum);
}

// ---- bits ----

template <class T> void copy(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = static_cast<T>(t.r[i.a]);
}
template <class T> void select(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = static_cast<T>(t.r[i.c] & 1 ? t.r[i.a] : t.r[i.b]);
}
template <class T> void shift_left(Machine&, Thread& t, const Instruction& i) {
    const auto by = static_cast<std::uint32_t>(t.r[i.b]);
    t.r[i.d] = by >= 8 * sizeof(T) ? 0 : static_cast<T>(static_cast<T>(t.r[i.a]) << by);
}
template <class T> void shift_right(Machine&, Thread& t, const Instruction& i) {
    const std::uint32_t by = std::min(static_cast<std::uint32_t>(t.r[i.b]),
                                      std::uint32_t{8 * sizeof(T)} - (std::is_signed_v<T> ? 1 : 0));
    t.r[i.d] = by >= 8 * sizeof(T) ? 0 : slot<T>(static_cast<T>(value<T>(t.r[i.a]) >> by));
}
template <class T>
void insert_bits(Machine&, Thread& t, const Instruction& i) {  // bfi d, a, b, position, length
    const std::uint64_t from = t.r[i.c] & 0xFF, count = t.r[i.e] & 0xFF;
    T result = static_cast<T>(t.r[i.b]);
    for (std::uint64_t k = 0; k < count && from + k < 8 * sizeof(T); ++k) {
        const T mask = static_cast<T>(T(1) << (from + k));
        result = static_cast<T>(t.r[i.a] >> k & 1 ? result | mask : result & ~mask);
    }
    t.r[i.d] = result;
}
template <class T> void count_leading_zeros(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = static_cast<std::uint64_t>(std::countl_zero(static_cast<T>(t.r[i.a])));
}
void not_predicate(Machine&, Thread& t, const Instruction& i) { t.r[i.d] = ~t.r[i.a] & 1; }
template <std::size_t bits> void pack(Machine& m, Thread& t, const Instruction& i) {
    const auto parts = m.list(i.a, i.count);
    const std::size_t width = bits / parts.size();
    std::uint64_t whole = 0;
    for (std::size_t k = 0; k < parts.size(); ++k)
        whole |= (t.r[parts[k]] & ((std::uint64_t{1} << width) - 1)) << (k * width);
    t.r[i.d] = whole;
}
template <std::size_t bits> void unpack(Machine& m, Thread& t, const Instruction& i) {
    const auto parts = m.list(i.d, i.count);
    const std::size_t width = bits / parts.size();
    const std::uint64_t whole = t.r[i.a];
    for (std::size_t k = 0; k < parts.size(); ++k)
        t.r[parts[k]] = whole >> (k * width) & ((std::uint64_t{1} << width) - 1);
}

// ---- comparisons ----

struct Equal {
    template <class T> static bool of(T a, T b) { return a == b; }
};
struct NotEqual {  // false if a or b is NaN
    template <class T> static bool of(T a, T b) { return a < b || a > b; }
};
struct Less {
    template <class T> static bool of(T a, T b) { return a < b; }
};
struct LessEqual {
    template <class T> static bool of(T a, T b) { return a <= b; }
};
struct Greater {
    template <class T> static bool of(T a, T b) { return a > b; }
};
struct GreaterEqual {
    template <class T> static bool of(T a, T b) { return a >= b; }
};
struct Numbers {
    template <class T> static bool of(T a, T b) { return a == a && b == b; }
};
struct SomeNan {
    template <class T> static bool of(T a, T b) { return !Numbers::of(a, b); }
};
template <class F> struct OrNan {
    template <class T> static bool of(T a, T b) { return SomeNan::of(a, b) || F::of(a, b); }
};
template <class T, class F> void compare(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = F::of(value<T>(t.r[i.a]), value<T>(t.r[i.b]));
}

// ---- conversions ----

struct Nearest {
    template <class T> static T of(T a) { return std::nearbyint(a); }
};
struct ToZero {
    template <class T> static T of(T a) { return std::trunc(a); }
};
struct Down {
    template <class T> static T of(T a) { return std::floor(a); }
};
struct Up {
    template <class T> static T of(T a) { return std::ceil(a); }
};
template <class To, class From> void convert(Machine&, Thread& t, const Instruction& i) {
    t.r[i.d] = slot<To>(static_cast<To>(value<From>(t.r[i.a])));
}
template <class To, class From, class Round>
void convert_to_integer(Machine&, Thread& t, const Instruction& i) {
    const From rounded = Round::of(value<From>(t.r[i.a]));
    using Limits = std::numeric_limits<To>;
    // The result of NaN is 0 only if neither type has 64 bits.
    constexpr int bits = 8 * sizeof(To);
    To result = sizeof(From) < 8 && bits < 64 ? To(0) : static_cast<To>(Bits<To>(1) << (bits - 1));
    if (rounded >= std::ldexp(From(1), Limits::digits))
        result = Limits::max();
    else if (rounded <= static_cast<From>(Limits::min()))
        result = Limits::min();
    else if (rounded == rounded)
        result = static_cast<To>(rounded);
    t.r[i.d] = slot<To>(result);
}

// ---- memory ----

template <class T, bool is_vector> void load(Machine& m, Thread& t, const Instruction& i) {
    const std::uint64_t address = t.r[i.a] + static_cast<std::uint64_t>(i.offset);
    const auto one = [&](std::uint32_t to, std::uint64_t from) {
        T read;
        std::memcpy(&read, m.at<Machine::Use::read>(t, i, from, sizeof(T)), sizeof(T));
        if constexpr (std::is_signed_v<T>)
            t.r[to] = static_cast<std::uint64_t>(static_cast<std::int64_t>(read));
        else
            t.r[to] = read;
    };
    if constexpr (!is_vector) return one(i.d, address);
    m.require_aligned(t, i, address, sizeof(T) * i.count);
    for (std::size_t k = 0; k < i.count; ++k) one(m.list(i.d, i.count)[k], address + k * sizeof(T));
}
template <class T, bool is_vector> void store(Machine& m, Thread& t, const Instruction& i) {
    const std::uint64_t address = t.r[i.a] + static_cast<std::uint64_t>(i.offset);
    const auto one = [&](std::uint32_t from, std::uint64_t to) {
        const T written = static_cast<T>(t.r[from]);
        std::memcpy(m.at<Machine::Use::write>(t, i, to, sizeof(T)), &written, sizeof(T));
    };
    if constexpr (!is_vector) return one(i.b, address);
    m.require_aligned(t, i, address, sizeof(T) * i.count);
    for (std::size_t k = 0; k < i.count; ++k) one(m.list(i.b, i.count)[k], address + k * sizeof(T));
}
// Copies an argument or a result of a function: `offset` bytes from the address in `a` to that in `b`.
void copy_parameter(Machine& m, Thread& t, const Instruction& i) {
    m.copy_local(t, t.r[i.a], t.r[i.b], static_cast<std::size_t>(i.offset));
}

// ---- the table ----

using Table = std::unordered_map<std::string, Run>;

template <class T> const char* name_of();
#define TALLY_NAME(type, name) \
    template <> [[maybe_unused]] const char* name_of<type>() { return name; }
TALLY_NAME(std::int8_t, "s8")
TALLY_NAME(std::int16_t, "s16")
TALLY_NAME(std::int32_t, "s32")
TALLY_NAME(std::int64_t, "s64")
TALLY_NAME(std::uint8_t, "u8")
TALLY_NAME(std::uint16_t, "u16")
TALLY_NAME(std::uint32_t, "u32")
TALLY_NAME(std::uint64_t, "u64")
TALLY_NAME(float, "f32")
TALLY_NAME(double, "f64")
#undef TALLY_NAME

template <class... Types, class F> void for_types(F f) { (f.template operator()<Types>(), ...); }

template <class T> void add_comparisons(Table& table, const std::string& type) {
    table["setp.eq." + type] = compare<T, Equal>;
    table["setp.ne." + type] = compare<T, NotEqual>;
    table["setp.lt." + type] = compare<T, Less>;
    table["setp.le." + type] = compare<T, LessEqual>;
    table["setp.gt." + type] = compare<T, Greater>;
    table["setp.ge." + type] = compare<T, GreaterEqual>;
}

template <class T> void add_integers(Table& table) {
    const std::string type = name_of<T>();
    table["add." + type] = binary<T, Add>;
    table["sub." + type] = binary<T, Sub>;
    table["mul.lo." + type] = binary<T, Mul>;
    table["mul.hi." + type] = binary<T, MulHigh>;
    table["mad.lo." + type] = mad_low<T>;
    table["div." + type] = binary<T, Div>;
    table["rem." + type] = binary<T, Rem>;
    table["min." + type] = binary<T, Min>;
    table["max." + type] = binary<T, Max>;
    table["shr." + type] = shift_right<T>;
    if constexpr (std::is_signed_v<T>) {
        table["neg." + type] = unary<T, Neg>;
        table["abs." + type] = unary<T, Abs>;
    }
    if constexpr (sizeof(T) < 8) {
        table["mul.wide." + type] = mul_wide<T>;
        table["mad.wide." + type] = mad_wide<T>;
    }
    add_comparisons<T>(table, type);
}

template <class T> void add_carries(Table& table, const std::string& type) {
    table["add.cc." + type] = with_carry<T, Part::sum, false, true>;
    table["addc." + type] = with_carry<T, Part::sum, true, false>;
    table["addc.cc." + type] = with_carry<T, Part::sum, true, true>;
    table["sub.cc." + type] = with_carry<T, Part::difference, false, true>;
    table["subc." + type] = with_carry<T, Part::difference, true, false>;
    table["subc.cc." + type] = with_carry<T, Part::difference, true, true>;
    table["mad.lo.cc." + type] = with_carry<T, Part::low, false, true>;
    table["madc.lo." + type] = with_carry<T, Part::low, true, false>;
    table["madc.lo.cc." + type] = with_carry<T, Part::low, true, true>;
    table["mad.hi." + type] = with_carry<T, Part::high, false, false>;
    table["mad.hi.cc." + type] = with_carry<T, Part::high, false, true>;
    table["madc.hi." + type] = with_carry<T, Part::high, true, false>;
    table["madc.hi.cc." + type] = with_carry<T, Part::high, true, true>;
}

template <class T> void add_bits(Table& table) {
    const std::string bits = std::to_string(8 * sizeof(T)), type = "b" + bits;
    table["and." + type] = binary<T, And>;
    table["or." + type] = binary<T, Or>;
    table["xor." + type] = binary<T, Xor>;
    table["not." + type] = unary<T, Not>;
    table["shl." + type] = shift_left<T>;
    table["shr." + type] = shift_right<T>;
    table["setp.eq." + type] = compare<T, Equal>;
    table["setp.ne." + type] = compare<T, NotEqual>;
    table["bfi." + type] = insert_bits<T>;
    table["clz." + type] = count_leading_zeros<T>;
    if constexpr (sizeof(T) > 2) {
        table["pack." + type] = pack<8 * sizeof(T)>;
        table["unpack." + type] = unpack<8 * sizeof(T)>;
    }
    for (const char* kind : {"b", "u", "s", "f"}) {
        table["mov." + (kind + bits)] = copy<T>;
        table["selp." + (kind + bits)] = select<T>;
    }
}

template <class T> void add_floats(Table& table) {
    const std::string type = name_of<T>();
    // Without .rn, ptxas may contract a product and a sum, so such instructions are not supported.
    table["add.rn." + type] = binary<T, Add>;
    table["sub.rn." + type] = binary<T, Sub>;
    table["mul.rn." + type] = binary<T, Mul>;
    table["div.rn." + type] = binary<T, Div>;
    table["min." + type] = binary<T, Min>;
    table["max." + type] = binary<T, Max>;
    table["copysign." + type] = binary<T, CopySign>;
    table["fma.rn." + type] = fma<T>;
    table["sqrt.rn." + type] = unary<T, Sqrt>;
    table["rcp.rn." + type] = unary<T, Reciprocal>;
    table["neg." + type] = unary<T, Neg>;
    table["abs." + type] = unary<T, Abs>;
    add_comparisons<T>(table, type);
    table["setp.equ." + type] = compare<T, OrNan<Equal>>;
    table["setp.neu." + type] = compare<T, OrNan<NotEqual>>;
    table["setp.ltu." + type] = compare<T, OrNan<Less>>;
    table["setp.leu." + type] = compare<T, OrNan<LessEqual>>;
    table["setp.gtu." + type] = compare<T, OrNan<Greater>>;
    table["setp.geu." + type] = compare<T, OrNan<GreaterEqual>>;
    table["setp.num." + type] = compare<T, Numbers>;
    table["setp.nan." + type] = compare<T, SomeNan>;
    table["cvt.rni." + type + "." + type] = unary<T, Nearest>;
    table["cvt.rzi." + type + "." + type] = unary<T, ToZero>;
    table["cvt.rmi." + type + "." + type] = unary<T, Down>;
    table["cvt.rpi." + type + "." + type] = unary<T, Up>;
    for_types<std::int16_t, std::int32_t, std::int64_t, std::uint16_t, std::uint32_t, std::uint64_t>(
        [&]<class To>() {
            const std::string ending = std::string(".") + name_of<To>() + "." + type;
            table["cvt.rni" + ending] = convert_to_integer<To, T, Nearest>;
            table["cvt.rzi" + ending] = convert_to_integer<To, T, ToZero>;
            table["cvt.rmi" + ending] = convert_to_integer<To, T, Down>;
            table["cvt.rpi" + ending] = convert_to_integer<To, T, Up>;
            table["cvt.rn." + type + "." + name_of<To>()] = convert<T, To>;
        });
}

template <class T> void add_memory(Table& table, const std::string& type) {
    table["ld." + type] = load<T, false>;
    table["ld.v." + type] = load<T, true>;
    table["st." + type] = store<Bits<T>, false>;
    table["st.v." + type] = store<Bits<T>, true>;
}

Table made() {
    Table table;
    for_types<std::int16_t, std::int32_t, std::int64_t, std::uint16_t, std::uint32_t, std::uint64_t>(
        [&]<class T>() { add_integers<T>(table); });
    for_types<std::uint16_t, std::uint32_t, std::uint64_t>([&]<class T>() { add_bits<T>(table); });
    for_types<float, double>([&]<class T>() { add_floats<T>(table); });
    add_carries<std::uint32_t>(table, "u32");
    add_carries<std::uint64_t>(table, "u64");
    for_types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
              std::uint32_t, std::uint64_t>([&]<class From>() {
        add_memory<From>(table, name_of<From>());
        if constexpr (!std::is_signed_v<From>)
            add_memory<From>(table, "b" + std::to_string(8 * sizeof(From)));
        for_types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                  std::uint32_t, std::uint64_t>([&]<class To>() {
            table[std::string("cvt.") + name_of<To>() + "." + name_of<From>()] = convert<To, From>;
        });
    });
    add_memory<std::uint32_t>(table, "f32");
    add_memory<std::uint64_t>(table, "f64");
    table["cvt.f64.f32"] = convert<double, float>;
    table["cvt.rn.f32.f64"] = convert<float, double>;
    table["and.pred"] = binary<std::uint64_t, And>;
    table["or.pred"] = binary<std::uint64_t, Or>;
    table["xor.pred"] = binary<std::uint64_t, Xor>;
    table["mov.pred"] = copy<std::uint64_t>;
    table["not.pred"] = not_predicate;
    for (const char* space : {"global", "shared", "local", "param", "const"})
        for (const char* to : {"", "to."})
            table[std::string("cvta.") + to + space + ".u64"] = copy<std::uint64_t>;
    table["copy"] = copy_parameter;
    table["shf.l.wrap.b32"] = funnel_shift<true, false>;
    table["shf.l.clamp.b32"] = funnel_shift<true, true>;
    table["shf.r.wrap.b32"] = funnel_shift<false, false>;
    table["shf.r.clamp.b32"] = funnel_shift<false, true>;
    return table;
}

const Table& table() {
    static const Table& one = *new Table(made());  // never destroyed: kernels may run while the program ends
    return one;
}

}  // namespace

Run operation(const std::string& name) {
    const auto found = table().find(name);
    return found == table().end() ? nullptr : found->second;
}

std::vector<std::string> operations() {
    std::vector<std::string> names;
    for (const auto& [name, run] : table()) names.push_back(name);
    return names;
}

}  // namespace tally::ptx
