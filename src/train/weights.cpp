// Saves and loads the members of a model as tensors, and transposes matrices into PyTorch's order.
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "tally/array/transpose_cache.hpp"
#include "tally/io/safetensors.hpp"
#include "tally/train/module.hpp"

namespace tally {
namespace {

// The metadata names the order of the weights, because a square matrix fits both orders. PyTorch writes "pt".
const std::string order_key = "format";
std::string word_for(WeightOrder order) { return order == WeightOrder::pytorch ? "pt" : "tally"; }

// Returns the order of the weights in the file. Throws if the file declares a different order than `named`,
// or if `named` is empty and the file does not declare tally's order.
WeightOrder agreed_order(const std::string& path, const detail::Safetensors& file,
                         std::optional<WeightOrder> named) {
    const auto said = file.metadata.find(order_key);
    const auto says = [&](WeightOrder order) {
        return said != file.metadata.end() && said->second == word_for(order);
    };
    const WeightOrder wanted = named.value_or(WeightOrder::tally),
                      other = wanted == WeightOrder::tally ? WeightOrder::pytorch : WeightOrder::tally;
    if (says(other))
        throw Error("[load_weights] '" + path + "' stores weights in a different order ('" + order_key +
                    "' is '" + word_for(other) +
                    "'); load it with WeightOrder::" + (other == WeightOrder::pytorch ? "pytorch" : "tally"));
    if (!named && !says(wanted))
        throw Error("[load_weights] '" + path + "' does not declare the order of its weights (" +
                    (said == file.metadata.end() ? "its metadata has no '" + order_key + "'"
                                                 : "'" + order_key + "' is '" + said->second + "'") +
                    "); name it: WeightOrder::pytorch where a matrix is (out, in), as PyTorch saves it, "
                    "WeightOrder::tally where it is (in, out)");
    return wanted;
}

template <class S> const Array<S>& numbers_of(const detail::Member<S>& member) {
    return member.buffer ? *member.buffer : member.parameter.value();
}

template <class S> Shape shape_of(const detail::Member<S>& member) {
    return member.counter ? member.counter->shape() : numbers_of(member).shape();
}

Shape transposed_shape(const Shape& shape) { return {shape[1], shape[0]}; }

}  // namespace

template <class S> void Module<S>::save_weights(const std::string& path, WeightOrder order) {
    std::map<std::string, detail::AnyArray> tensors;
    for (const detail::Member<S>& member : detail::members(*this)) {
        if (member.counter) {
            tensors.emplace(member.name, *member.counter);
            continue;
        }
        const bool transpose = member.transposed && order == WeightOrder::pytorch;
        tensors.emplace(member.name, transpose ? detail::transposed(numbers_of(member).to(Device::cpu))
                                               : numbers_of(member));
    }
    detail::save_safetensors(path, tensors, detail::checksum_metadata({{order_key, word_for(order)}}));
}

template <class S> void Module<S>::load_weights(const std::string& path, std::optional<WeightOrder> named) {
    detail::Safetensors file = detail::load_safetensors(path);
    const WeightOrder order = agreed_order(path, file, named);

    std::string wrong;
    std::vector<std::pair<detail::Member<S>, detail::AnyArray>> found;
    for (const detail::Member<S>& member : detail::members(*this)) {
        const auto entry = file.tensors.extract(member.name);
        const std::string name = "'" + member.name + "'";
        if (!entry) {
            wrong += "; " + name + " is missing";
            continue;
        }
        const bool transpose = member.transposed && order == WeightOrder::pytorch;
        const Shape held = shape_of(member), wanted = transpose ? transposed_shape(held) : held;
        const auto take = [&](const auto* array, const char* type) {
            if (!array)
                wrong += "; " + name + " is not of the model's type " + type;
            else if (array->shape() != wanted)
                wrong += "; " + name + " is " + to_string(array->shape()) + ", the model requires " +
                         to_string(wanted);
            else
                found.emplace_back(member, *array);
        };
        if (member.counter)
            take(std::get_if<Array<std::int32_t>>(&entry.mapped()), "I32 or I64");
        else
            take(std::get_if<Array<S>>(&entry.mapped()), sizeof(S) == 4 ? "F32" : "F64");
    }
    for (const auto& [name, array] : file.tensors) wrong += "; the model has no '" + name + "'";
    if (!wrong.empty())
        throw Error("[load_weights] '" + path + "' does not fit the model: " + wrong.substr(2));

    std::vector<detail::PendingValue<S>> all;  // allocated before the first commit()
    std::map<const void*, std::pair<std::string, Array<S>>> tied;
    for (const auto& [member, numbers] : found) {
        if (member.counter) {
            all.emplace_back(*member.counter, std::get<Array<std::int32_t>>(numbers).clone());
            continue;
        }
        const bool transpose = member.transposed && order == WeightOrder::pytorch;
        const auto& read = std::get<Array<S>>(numbers);
        const Array<S> given = transpose ? detail::transposed(read) : read;
        const void* const place =
            member.buffer ? static_cast<const void*>(member.buffer) : member.parameter.node();
        const auto& [name, before] = tied.try_emplace(place, member.name, given).first->second;
        if (std::memcmp(before.data(), given.data(), given.size() * sizeof(S)) != 0)
            throw Error("[load_weights] '" + path + "' has different numbers for '" + name + "' and '" +
                        member.name + "', which are one parameter; load the file into a model that has both");
        Array<S> fresh = given.to(numbers_of(member).device());
        if (member.buffer)
            all.emplace_back(*member.buffer, std::move(fresh));
        else
            all.emplace_back(member.parameter, std::move(fresh));
    }
    for (detail::PendingValue<S>& each : all) each.commit();
}

template void Module<float>::save_weights(const std::string&, WeightOrder);
template void Module<double>::save_weights(const std::string&, WeightOrder);
template void Module<float>::load_weights(const std::string&, std::optional<WeightOrder>);
template void Module<double>::load_weights(const std::string&, std::optional<WeightOrder>);

}  // namespace tally
