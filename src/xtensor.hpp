// Converts arrays to xtensor views of the same memory, and xtensor expressions to arrays. This is the only
// public header that requires xtensor.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<xtensor/containers/xadapt.hpp>)  // 0.26 and later
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xmath.hpp>
#include <xtensor/core/xnoalias.hpp>
#elif __has_include(<xtensor/xadapt.hpp>)
#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#else
#error \
    "tally/xtensor.hpp requires xtensor on the include path: find_package(xtensor) and link xtensor (Debian: libxtensor-dev)"
#endif

#include "tally/array/array.hpp"
#include "tally/array/shape.hpp"
#include "tally/base/error.hpp"
#include "tally/base/text.hpp"
#include "tally/kernels/device.hpp"
#include "tally/kernels/into.hpp"

namespace tally {

namespace detail {
template <class S> inline constexpr bool for_arrays =
    std::is_same_v<S, float> || std::is_same_v<S, double> || std::is_same_v<S, std::int32_t>;

inline void require_on_cpu(const char* op, const Shape& shape, Device device) {
    if (device != Device::cpu)
        throw Error(std::string("[") + op + "] the array of " + to_string(shape) + " is on " +
                    to_string(device) +
                    ", where xtensor cannot reach it: bring it back with to(Device::cpu)");
}

template <class S> void require_readable(const char* op, const Array<S>& x) {
    if (!x.storage())
        throw Error(std::string("[") + op + "] an array of " + to_string(x.shape()) +
                    " has no memory: nothing was assigned to it, or it was freed or moved away");
    require_on_cpu(op, x.shape(), x.device());
}

inline auto xtensor_shape(const Shape& shape) {
    return xt::dynamic_shape<std::size_t>(shape.begin(), shape.end());
}

template <class E> Shape shape_of_expression(const E& expression) {
    const auto& extents = expression.shape();
    return Shape(std::vector<std::int64_t>(extents.begin(), extents.end()));
}

// Casts the expression to S, because xsimd cannot assign or add an expression of bool to other numbers.
template <class S, class E> decltype(auto) made_of(const E& expression) {
    if constexpr (std::is_same_v<std::remove_cv_t<typename E::value_type>, S>)
        return (expression);
    else
        return xt::cast<S>(expression);
}

// Throws Error if a number has no exact int32 value.
template <class E> void write_integers(const E& expression, std::int32_t* to) {
    std::size_t at = 0;
    for (auto it = expression.template cbegin<xt::layout_type::row_major>(); at < expression.size();
         ++it, ++at) {
        const auto number = static_cast<long double>(*it);
        if (!(number >= -0x1p31L && number < 0x1p31L && number == std::trunc(number)))
            throw Error("[array_of] element " + std::to_string(at) + " is " +
                        to_text(static_cast<double>(number)) +
                        ", which is not a whole number from -2147483648 to 2147483647; round it with "
                        "xt::rint, or write array_of<double>(expression)");
        to[at] = static_cast<std::int32_t>(number);
    }
}

template <class S> auto xtensor_over(S* numbers, const Shape& shape) {
    return xt::adapt<xt::layout_type::row_major>(numbers, shape.size(), xt::no_ownership(),
                                                 xtensor_shape(shape));
}
}  // namespace detail

// Returns a read-only view. The view shares the buffer of `x`, and a later write to `x` copies the buffer
// first. The buffer is freed only after the view and all expressions that use the view.
template <class S> auto as_xtensor(const Array<S>& x) {
    detail::require_readable("as_xtensor", x);
    return xt::adapt_smart_ptr<xt::layout_type::row_major>(x.data(), detail::xtensor_shape(x.shape()),
                                                           std::make_shared<const Array<S>>(x));
}

// Returns a view for writing. Calls x.writable(), which copies the buffer if another array shares the buffer.
// The view is valid until `x` is copied, saved for a backward function or freed. Assign only expressions of
// the same shape as `x`. For an expression e of a different shape, use xt::broadcast(e, shape).
template <class S> auto as_writable_xtensor(Array<S>& x) {
    detail::require_readable("as_writable_xtensor", x);
    return detail::xtensor_over(x.writable(), x.shape());
}

// Computes dst = expression or dst += expression directly in the memory of the gradient. For example, a
// backward function of custom() may call accumulate_into(to.into(0), as_xtensor(dy) * 2).
template <class S, class E> void accumulate_into(Into<Array<S>> into, const xt::xexpression<E>& expression) {
    const Shape shape = detail::shape_of_expression(expression.derived_cast());
    if (!(shape == into.dst.shape()))
        detail::fail_gradient_shape(detail::describe(into.dst), "shape " + to_string(shape));
    detail::require_on_cpu("accumulate_into", shape, into.dst.device());
    auto place = detail::xtensor_over(detail::grad_buffer(into).dst, shape);
    if (into.how == Write::set)
        xt::noalias(place) = detail::made_of<S>(expression.derived_cast());
    else
        xt::noalias(place) += detail::made_of<S>(expression.derived_cast());
}

// Returns an array with the shape and the numbers of an expression, for example of xt::exp(view). With a type
// argument such as array_of<float>, converts the numbers to this type. With std::int32_t, throws Error for a
// number that is not an int32.
template <class S = void, class E> auto array_of(const xt::xexpression<E>& expression) {
    using Element = std::conditional_t<std::is_void_v<S>, std::remove_cv_t<typename E::value_type>, S>;
    static_assert(detail::for_arrays<Element>,
                  "an array holds float or double, or std::int32_t for labels and indices; of elements of "
                  "another type write array_of<float>(expression) or array_of<double>(expression)");
    if constexpr (detail::for_arrays<Element>) {
        const Shape shape = detail::shape_of_expression(expression.derived_cast());
        Array<Element> made = Array<Element>::empty(shape);
        if constexpr (std::is_same_v<Element, std::int32_t> &&
                      !std::is_same_v<std::remove_cv_t<typename E::value_type>, std::int32_t>)
            detail::write_integers(expression.derived_cast(), made.raw());
        else
            accumulate_into(Into<Array<Element>>{made, Write::set}, expression);
        return made;
    }
}

}  // namespace tally
