// on_ranks() calls `each` on all ranks of a lesson and returns the results of all ranks.
//
//     const std::vector<double> sums = on_ranks([&](ProcessGroup& processes) { return sum_on(processes.rank()); });
//
// The result of `each` is a string, a trivially copyable value or a vector of these. `each` runs in other
// processes, so the program that shows the lesson does not see changes of variables.
#pragma once

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "course/kit/ranks.hpp"
#include "tally/distributed.hpp"

namespace tally::lesson {

namespace detail {
template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};

template <class T> std::string to_bytes(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        return value;
    } else if constexpr (IsVector<T>::value) {
        static_assert(std::is_trivially_copyable_v<typename T::value_type>);
        return {reinterpret_cast<const char*>(value.data()), value.size() * sizeof(typename T::value_type)};
    } else {
        static_assert(std::is_trivially_copyable_v<T>);
        return {reinterpret_cast<const char*>(&value), sizeof(T)};
    }
}
template <class T> T from_bytes(const std::string& bytes) {
    if constexpr (std::is_same_v<T, std::string>) {
        return bytes;
    } else if constexpr (IsVector<T>::value) {
        T value(bytes.size() / sizeof(typename T::value_type));
        if (!value.empty()) std::memcpy(value.data(), bytes.data(), bytes.size());
        return value;
    } else {
        T value;
        std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    }
}

inline ProcessGroup& own_processes() {
    static ProcessGroup processes({.timeout = 30});
    return processes;
}

template <class F> std::string run_on_rank(const F& each, const std::string& call) {
    ProcessGroup& processes = own_processes();
    try {
        return to_bytes(each(processes));
    } catch (const std::exception& error) {
        processes.report_failure(call, error.what());
        throw std::runtime_error("rank " + std::to_string(processes.rank()) + ": " + error.what());
    }
}
}  // namespace detail

template <class F> auto on_ranks(const F& each, Where where = Where::here()) {
    using Result = std::decay_t<std::invoke_result_t<const F&, ProcessGroup&>>;
    std::vector<std::string> results_by_rank;
    if (is_rank()) {
        const std::string call = "line " + std::to_string(where.line) + " of the lesson";
        results_by_rank = detail::own_processes().all_gather(call, detail::run_on_rank(each, call));
        if (detail::own_processes().rank() == 0) write_results(where.line, results_by_rank);
    } else {
        results_by_rank = take_results(where.line);
    }
    std::vector<Result> results;
    for (const std::string& bytes : results_by_rank) results.push_back(detail::from_bytes<Result>(bytes));
    return results;
}

}  // namespace tally::lesson
