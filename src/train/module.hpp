// What layers and models have in common: members with names, and the pass that tells a layer what it
// is part of.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tally/array/array.hpp"
#include "tally/autograd/var.hpp"
#include "tally/checkpoint/trace.hpp"
#include "tally/io/training_state.hpp"

namespace tally {

namespace detail {
// Something that every micro-batch contributes to and that happens once per update, such as batch
// norm's running statistics.
class SideEffect {
public:
    virtual ~SideEffect() = default;
    virtual void join(const SideEffect& later) = 0;  // what the same layer left in a later micro-batch
    virtual void prepare() {}  // takes the memory that commit() needs: memory must not run out there
    virtual void commit() = 0;
    // For a window that is saved before it happens; Module::saved_effect() reads it back.
    virtual void save(TrainingState&, const std::string& under) const {
        throw Error("[effect] what '" + under + "' has left cannot be saved before the update");
    }
};
}  // namespace detail

// Collected while a window runs; whoever closes it commits them, or lets them go unseen.
class SideEffects {
public:
    template <class Owner> void add(Owner* owner, std::unique_ptr<detail::SideEffect> effect) {
        add(key(owner), std::move(effect));
    }
    // Takes over those of a later micro-batch.
    void join(SideEffects later) {
        for (auto& [owner, effect] : later.all_) add(std::move(owner), std::move(effect));
    }
    void prepare() {
        for (auto& [owner, effect] : all_) effect->prepare();
    }
    void commit() {
        prepare();
        for (auto& [owner, effect] : std::exchange(all_, {})) effect->commit();
    }
    bool empty() const { return all_.empty(); }
    std::size_t size() const { return all_.size(); }
    template <class Owner> const detail::SideEffect* of(Owner* owner) const {
        const Key wanted = key(owner);
        for (const auto& [present, effect] : all_)
            if (present == wanted) return effect.get();
        return nullptr;
    }

private:
    using Key = std::shared_ptr<const void>;

    // A module may move while its effect waits; its place stays.
    template <class Owner> static Key key(Owner* owner) {
        if constexpr (requires { owner->place(); })
            return owner->place();
        else
            return Key(Key(), owner);
    }
    void add(Key owner, std::unique_ptr<detail::SideEffect> effect) {
        if (is_recomputing()) return;  // it was left the first time
        for (auto& [present, joined] : all_)
            if (present == owner) return joined->join(*effect);
        all_.emplace_back(std::move(owner), std::move(effect));
    }

    std::vector<std::pair<Key, std::unique_ptr<detail::SideEffect>>> all_;  // in the order in which they came
};

namespace detail {
// Which numbers a layer draws while it trains: those of the stream it was told, or of its place among the
// layers of its model that were told none. The place is a function of the model's structure: of the largest
// model that has listed the layer, whoever was listed first.
class LayerRng {
public:
    explicit LayerRng(std::optional<std::uint64_t> told) : told_(told) {}
    const std::optional<std::uint64_t>& told() const { return told_; }
    std::uint64_t number() const { return told_ ? *told_ : number_; }
    std::uint64_t layer() const { return layer_; }
    void place(std::size_t depth, std::uint64_t number) {
        if (std::pair(depth, number) < std::pair(depth_, number_)) return;
        depth_ = depth;
        number_ = number;
    }

private:
    static std::uint64_t next() {
        static std::atomic<std::uint64_t> layers = 0;
        return layers++;
    }
    std::optional<std::uint64_t> told_;
    std::size_t depth_ = 0;  // below that model
    std::uint64_t number_ = 0;
    std::uint64_t layer_ = next();  // tells layers apart, and nothing else
};

// Records which layers drew in a pass. No two layers may share a stream, and a layer draws equally many rows for each
// item in all passes of a window, since an item's number gives its rows' numbers.
class RngUse {
public:
    void draw(std::uint64_t stream, std::uint64_t layer, std::uint64_t seed, std::int64_t first_item,
              std::int64_t rows_per_item = 1) {
        const auto before = std::exchange(for_, std::pair(seed, first_item));
        if (before != for_) by_stream_.clear();
        if (before.first != seed) rows_.clear();
        if (by_stream_.emplace(stream, layer).first->second != layer)
            throw Error("[dropout] two layers of one pass would draw from stream " + std::to_string(stream) +
                        " and drop the same; let one model list both as its children (and make the optimizer "
                        "from its parameters), or tell each a stream: Dropout(p, stream)");
        auto& [first, rows] = rows_.emplace(stream, Rows{first_item, {}}).first->second;
        if (first == first_item) rows.insert(rows_per_item);
        if (rows.count(rows_per_item) > 0) return;
        throw Error(
            "[dropout] an item has " + std::to_string(*rows.begin()) + " rows in one micro-batch and " +
            std::to_string(rows_per_item) +
            " in another, so rows of different items would drop the same; keep the items as the first "
            "axis: (items, places, width) instead of (items * places, width)");
    }
    void join(const RngUse& later) {
        for (const auto& [stream, layer] : later.by_stream_)
            for (const std::int64_t rows : later.rows_.at(stream).second)
                draw(stream, layer, later.for_.first, later.for_.second, rows);
    }
    void begin_pass() { by_stream_.clear(); }  // of the same window

private:
    std::pair<std::uint64_t, std::int64_t> for_;
    std::map<std::uint64_t, std::uint64_t> by_stream_;
    using Rows = std::pair<std::int64_t, std::set<std::int64_t>>;
    std::map<std::uint64_t, Rows>
        rows_;  // by stream: the window's first item that drew, and its numbers of rows
};
}  // namespace detail

// One way forward through a model. Whatever is random in it is a function of (seed, stream of
// the layer, item).
struct ForwardPass {
    bool training = false;
    std::uint64_t seed = 0;       // of this window
    std::int64_t first_item = 0;  // where this micro-batch begins in its window
    SideEffects effects{};
    detail::RngUse draws{};
    std::optional<std::int64_t> items = {};  // of this micro-batch, where a window knows it
    bool over = false;                       // the window of this pass is finished or discarded
    bool implied = false;                    // the layer was called without a pass

    // The same items and randomness, for a second run or another part of the model; without effects and draws.
    ForwardPass again() const {
        ForwardPass same{training, seed, first_item};
        same.items = items;
        same.over = over;
        same.implied = implied;
        return same;
    }
    ForwardPass again(std::int64_t first, std::int64_t count) const {  // with other items
        ForwardPass other = again();
        other.first_item = first;
        other.items = count;
        return other;
    }
};

namespace detail {
// A layer that was called without a pass while the graph was recorded; null when a pass begins.
inline constinit thread_local const char* called_without_pass = nullptr;
void note_made_without_pass(const Node& result);
// Throws if the graph behind a node has such a result.
void expect_made_in_pass(const std::string& what, const Node& graph);

// Asked by a layer that does something else in training. Says whether it trains.
bool trains(const char* layer, const ForwardPass& pass);
}  // namespace detail

// Where a layer's randomness comes from. No two layers of a model share a stream.
struct RngStream {
    std::uint64_t seed = 0, number = 0;
};

// ---- members ----

template <class S> class Module;

namespace detail {
// A parameter or a buffer of a model, by its name.
template <class S> struct Member {
    std::string name;
    Var<Array<S>> parameter;                 // empty for a buffer
    Array<S>* buffer = nullptr;              // numbers that belong to the model and want no gradient
    bool turned = false;                     // a matrix that PyTorch stores transposed
    Array<std::int32_t>* counter = nullptr;  // a buffer of whole numbers, which stays on the CPU
};
}  // namespace detail

// What a model lists in list(): parameters, buffers, and other modules.
template <class S> class Members {
public:
    // A parameter that a layer goes without is passed over.
    void parameter(const std::string& name, const Var<Array<S>>& value) {
        if (value) add({prefix_ + name, value});
    }
    // A matrix (in, out), which PyTorch stores as (out, in).
    void weight(const std::string& name, const Var<Array<S>>& value) {
        add({prefix_ + name, value, nullptr, true});
    }
    void buffer(const std::string& name, Array<S>& numbers) { add({prefix_ + name, {}, &numbers}); }
    void counter(const std::string& name, Array<std::int32_t>& numbers) {
        add({prefix_ + name, {}, nullptr, false, &numbers});
    }
    void child(const std::string& name, Module<S>& module) {
        for (const auto& [above, other] : modules_)
            if (other == &module && prefix_.rfind(above, 0) == 0)
                throw Error("[module] '" + above.substr(0, above.size() - 1) + "' lists itself again as '" +
                            prefix_ + name + "'; list as children only the parts that it consists of");
        const std::string before = std::exchange(prefix_, prefix_ + name + ".");
        modules_.emplace_back(prefix_, &module);
        module.list(*this);
        prefix_ = before;
    }
    const std::vector<detail::Member<S>>& all() const { return all_; }
    // All that are children, with a dot after their names.
    const std::vector<std::pair<std::string, Module<S>*>>& modules() const { return modules_; }
    // Gives each layer that draws and was not told a stream the first that nobody else has.
    void assign_rng_streams(Module<S>& model);

private:
    void add(detail::Member<S> member) {
        for (const detail::Member<S>& other : all_)
            if (other.name == member.name)
                throw Error("[module] two members are called '" + member.name + "'");
        all_.push_back(std::move(member));
    }

    std::string prefix_;
    std::vector<detail::Member<S>> all_;
    std::vector<std::pair<std::string, Module<S>*>> modules_;
};

// How each chain of a model is checkpointed: in so many segments, or as a number of bytes demands, which is
// an Error together; without either, in as many segments as the square root of its layers.
struct Checkpointing {
    std::size_t segments = 0, bytes = 0;
};

// A model or a part of one.
template <class S> class Module {
public:
    Module() = default;
    Module(Module&& other) noexcept : place_(std::exchange(other.place_, nullptr)) { point_here(); }
    Module& operator=(Module&& other) noexcept {
        if (this == &other) return *this;
        if (place_) *place_ = nullptr;
        place_ = std::exchange(other.place_, nullptr);
        point_here();
        return *this;
    }
    virtual ~Module() {
        if (place_) *place_ = nullptr;
    }

    // Tells its members, always in the same order, by the names that PyTorch uses. Only what is listed here is trained
    // and saved; a module without members says so by an empty list().
    virtual void list(Members<S>& members) = 0;
    // Points to this module, also after it has moved, and to null once it is gone.
    const std::shared_ptr<Module*>& place() {
        if (!place_) place_ = std::make_shared<Module*>(this);
        return place_;
    }
    // What an effect of this module's own has saved; null where there is none.
    virtual std::unique_ptr<detail::SideEffect> saved_effect(const TrainingState&,
                                                             const std::string& /*under*/) {
        return nullptr;
    }
    // Says whether it is a chain, which from now on is checkpointed so.
    virtual bool checkpoint(const Checkpointing&) { return false; }
    // Of a layer that draws while it trains.
    virtual detail::LayerRng* stream() { return nullptr; }

private:
    void point_here() {
        if (place_) *place_ = this;
    }

    std::shared_ptr<Module*> place_;
};

template <class S> void Members<S>::assign_rng_streams(Module<S>& model) {
    std::map<std::uint64_t, std::string> told;
    std::vector<std::pair<std::size_t, detail::LayerRng*>> untold;
    std::set<const detail::LayerRng*> seen;
    const auto visit = [&](const std::string& name, Module<S>& module) {
        detail::LayerRng* const stream = module.stream();
        if (!stream || !seen.insert(stream).second) return;
        if (!stream->told())
            return void(untold.emplace_back(std::count(name.begin(), name.end(), '.'), stream));
        const auto [other, first] = told.emplace(*stream->told(), name);
        if (!first)
            throw Error("[module] '" + other->second.substr(0, other->second.size() - 1) + "' and '" +
                        name.substr(0, name.size() - 1) + "' are both told to draw from stream " +
                        std::to_string(*stream->told()) +
                        "; tell them apart, or tell them nothing: then each gets its own");
    };
    visit("", model);
    for (const auto& [name, module] : modules_) visit(name, *module);
    std::uint64_t next = 0;
    for (const auto& [depth, stream] : untold) {
        while (told.count(next)) ++next;
        stream->place(depth, next++);
    }
}

// A module of one input and one output.
template <class S> class Layer : public Module<S> {
public:
    Var<Array<S>> operator()(Var<Array<S>> x, ForwardPass& pass) { return forward(std::move(x), pass); }
    // Without a pass: as it is used when training is over.
    Var<Array<S>> operator()(Var<Array<S>> x) {
        ForwardPass pass;
        pass.implied = true;
        const char* const before = std::exchange(detail::called_without_pass, nullptr);
        Var<Array<S>> y = forward(std::move(x), pass);
        if (!detail::called_without_pass)
            detail::called_without_pass = before;
        else if (y.requires_grad())
            detail::note_made_without_pass(*y.node());
        return y;
    }

protected:
    virtual Var<Array<S>> forward(Var<Array<S>> x, ForwardPass& pass) = 0;
};

namespace detail {
// All that a model tells of itself; from now on its layers know their places.
template <class S> Members<S> collect_members(Module<S>& model) {
    Members<S> members;
    model.list(members);
    members.assign_rng_streams(model);
    return members;
}
}  // namespace detail

template <class S> std::vector<detail::Member<S>> members(Module<S>& model) {
    return detail::collect_members(model).all();
}

// The model, by no name, and all its parts.
template <class S> std::vector<std::pair<std::string, Module<S>*>> modules(Module<S>& model) {
    const Members<S> members = detail::collect_members(model);
    std::vector<std::pair<std::string, Module<S>*>> all{{"", &model}};
    all.insert(all.end(), members.modules().begin(), members.modules().end());
    return all;
}

// The outermost chains in the model, which from now on are checkpointed: how many there are.
template <class S> std::size_t checkpoint(Module<S>& model, const Checkpointing& how) {
    std::size_t chains = 0;
    std::vector<std::string> done;
    for (const auto& [name, module] : modules(model)) {
        const auto within = [&name = name](const std::string& chain) { return name.rfind(chain, 0) == 0; };
        if (std::any_of(done.begin(), done.end(), within) || !module->checkpoint(how)) continue;
        done.push_back(name);
        ++chains;
    }
    return chains;
}

// A parameter that several layers share is there once, by its first name.
template <class S> std::vector<std::pair<std::string, Var<Array<S>>>> named_parameters(Module<S>& model) {
    std::vector<std::pair<std::string, Var<Array<S>>>> named;
    std::set<const void*> seen;
    for (const detail::Member<S>& member : members(model))
        if (member.parameter && seen.insert(member.parameter.node()).second)
            named.emplace_back(member.name, member.parameter);
    return named;
}

// The same without their names, as an optimizer wants them.
template <class S> std::vector<Var<Array<S>>> parameters(Module<S>& model) {
    std::vector<Var<Array<S>>> all;
    for (auto& [name, parameter] : named_parameters(model)) all.push_back(std::move(parameter));
    return all;
}

// ---- changing what parameters hold ----

// In place: other handles see it, and a rule that saved the value before will notice.
template <class S> void assign(const Var<Array<S>>& parameter, const Array<S>& value) {
    Array<S>& held = parameter.checked("assign").value;
    if (parameter.node()->state != detail::State::leaf)
        throw Error("[assign] only a parameter can be given a value");
    if (held.shape() != value.shape())
        throw Error("[assign] a parameter of " + to_string(held.shape()) + " was given a value of " +
                    to_string(value.shape()));
    Var<Array<S>>::check_thread("assign", *parameter.node());
    detail::require_unlocked("assign", *parameter.node());
    detail::require_own_value("assign", parameter.node()->grad_flags);
    if (!value.storage()) detail::fail_without_memory("assign");
    detail::before_in_place_update(held);
    S* const place = held.writable();
    detail::device_copy::bytes(place, held.device(), value.data(), value.device(), value.size() * sizeof(S));
}

namespace detail {
// What a parameter, a buffer or a counter will hold. It is made with all the memory that is needed, so that
// of many either all are committed or none: commit() cannot fail.
template <class S> class PendingValue {
public:
    PendingValue(const Var<Array<S>>& parameter, Array<S> numbers) : parameter_(parameter) {
        const ValueNode<Array<S>>& node = parameter_.checked("load");
        Var<Array<S>>::check_thread("load", node);
        detail::require_unlocked("assign", node);
        detail::require_own_value("load", node.grad_flags);
        if (node.state != detail::State::leaf || !detail::same_shape_and_device(node.value, numbers))
            throw Error("[load] a '" + std::string(node.op()) + "' of " + detail::describe(node.value) +
                        " cannot be given a value of " + detail::describe(numbers));
        detail::make_unique_buffer(numbers);  // it will be stepped in place
        numbers_ = std::move(numbers);
    }
    PendingValue(Array<S>& buffer, Array<S> numbers) : buffer_(&buffer), numbers_(std::move(numbers)) {}
    PendingValue(Array<std::int32_t>& counter, Array<std::int32_t> numbers)
        : counter_(&counter), whole_(std::move(numbers)) {}

    void commit() noexcept {
        if (counter_)
            std::swap(*counter_, whole_);
        else if (buffer_)
            std::swap(*buffer_, numbers_);
        else
            swap_in();
    }

private:
    void swap_in() noexcept {
        Array<S>& held = parameter_.node()->value;
        std::swap(held, numbers_);
        if (memory::detail::Storage* const before =
                numbers_.storage()) {  // whoever saved it or noted its version will notice
            memory::detail::raise_version(before);
            if (held.storage()) held.storage()->version.store(before->version.load());
        }
        detail::account_as(held, MemoryClass::parameter);
    }

    Var<Array<S>> parameter_;
    Array<S>* buffer_ = nullptr;
    Array<std::int32_t>* counter_ = nullptr;
    Array<S> numbers_;
    Array<std::int32_t> whole_;
};
}  // namespace detail

// Parameters stay the same for whoever holds them, as an optimizer does, which brings along what it remembers;
// their gradients are let go.
template <class S> void to(Module<S>& model, Device device) {
    const std::vector<detail::Member<S>> all = members(model);
    std::vector<Array<S>> moved;  // has all memory before the first one changes
    for (const detail::Member<S>& member : all) {
        if (member.parameter) {
            member.parameter.check_thread("to", *member.parameter.node());
            detail::require_unlocked("to", *member.parameter.node());
        }
        moved.push_back(member.buffer      ? member.buffer->to(device)
                        : member.parameter ? member.parameter.value().to(device)
                                           : Array<S>());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const detail::Member<S>& member = all[i];
        if (member.buffer) {
            *member.buffer = std::move(moved[i]);
        } else if (member.parameter && member.parameter.value().device() != device) {
            member.parameter.free_grad();
            detail::ValueNode<Array<S>>& node = *member.parameter.node();
            node.value = std::move(moved[i]);
            detail::account_as(node.value, MemoryClass::parameter);
            node.gradient = detail::like_without_memory(node.value);
        }
    }
}

extern template class Members<float>;
extern template class Members<double>;

}  // namespace tally
