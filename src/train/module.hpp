// A `Module` lists its members, and computes in the context of a `ForwardPass`.
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
// A `SideEffect` is a change that Window::finish() makes once per update, such as new running statistics.
class SideEffect {
public:
    virtual ~SideEffect() = default;
    // Merges `later`, a side effect of the same layer in a later micro-batch, into this side effect.
    virtual void join(const SideEffect& later) = 0;
    virtual void prepare() {}  // allocates all memory that commit() needs
    virtual void commit() = 0;
    // Saves the side effect of an unfinished update. Module::saved_effect() reads this side effect.
    virtual void save(TrainingState&, const std::string& prefix) const {
        throw Error("[effect] the side effect of '" + prefix +
                    "' cannot be saved before the update; call finish() first");
    }
};

// The class `SideEffects` collects side effects of micro-batches until Window::finish() commits them.
class SideEffects {
public:
    template <class Owner> void add(Owner* owner, std::unique_ptr<detail::SideEffect> effect) {
        add(key(owner), std::move(effect));
    }
    // Adds the side effects of a later micro-batch.
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

    // Returns the key of a module. The key stays valid if the module moves in memory before commit().
    template <class Owner> static Key key(Owner* owner) {
        if constexpr (requires { owner->place(); })
            return owner->place();
        else
            return Key(Key(), owner);
    }
    void add(Key owner, std::unique_ptr<detail::SideEffect> effect) {
        if (is_recomputing()) return;  // the first run has added this side effect
        for (auto& [present, joined] : all_)
            if (present == owner) return joined->join(*effect);
        all_.emplace_back(std::move(owner), std::move(effect));
    }

    std::vector<std::pair<Key, std::unique_ptr<detail::SideEffect>>> all_;  // in the order of add()
};

// A `LayerRng` selects the random stream of a layer. By default, the layers that draw random numbers use the
// streams 0, 1, 2, ... in order. The stream depends on the structure of the largest model that contains the
// layer, not on the order in which models were listed.
class LayerRng {
public:
    explicit LayerRng(std::optional<std::uint64_t> given) : given_(given) {}
    const std::optional<std::uint64_t>& given() const { return given_; }
    std::uint64_t number() const { return given_ ? *given_ : number_; }
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
    std::optional<std::uint64_t> given_;
    std::size_t depth_ = 0;  // depth of the layer in the largest model that listed the layer
    std::uint64_t number_ = 0;
    std::uint64_t layer_ = next();  // only identifies the layer
};

// An `RngUse` records which layers drew random numbers in a forward pass. Throws if two layers share a
// stream, or if a layer's rows per item change in a window. Two items could then draw the same numbers.
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
                        "from its parameters), or give each a stream: Dropout(p, stream)");
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
    void begin_pass() { by_stream_.clear(); }  // begins the window's next forward pass

private:
    std::pair<std::uint64_t, std::int64_t> for_;
    std::map<std::uint64_t, std::uint64_t> by_stream_;
    using Rows = std::pair<std::int64_t, std::set<std::int64_t>>;
    std::map<std::uint64_t, Rows> rows_;  // for each stream: the first item that drew, and the rows per item
};
}  // namespace detail

// A `ForwardPass` is the context of one forward pass through a model. Each random number depends only on the
// seed, the layer's stream and the item.
struct ForwardPass {
    bool training = false;
    std::uint64_t seed = 0;       // seed of this window
    std::int64_t first_item = 0;  // number of this micro-batch's first item in its window
    detail::SideEffects effects{};
    detail::RngUse draws{};
    std::optional<std::int64_t> items = {};  // number of items, if a Window made this object
    bool over = false;                       // the window is finished or discarded
    bool implied = false;                    // the layer was called without a ForwardPass

    // Returns a copy with the same items and random numbers, for a second run or for another part of the
    // model. The copy has no side effects and no records of random draws.
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
// Names a layer that recorded a graph without a `ForwardPass`. A `Window` resets this name to null.
inline constinit thread_local const char* called_without_pass = nullptr;
void note_made_without_pass(const Node& result);
// Throws if the graph of a node contains a result that was recorded by note_made_without_pass().
void require_made_in_pass(const std::string& what, const Node& graph);

// Returns whether `pass` is for training. Layers that behave differently in training call trains().
bool trains(const char* layer, const ForwardPass& pass);

// An `RngStream` selects the random numbers of a layer. Each layer of a model uses a different stream.
struct RngStream {
    std::uint64_t seed = 0, number = 0;
};
}  // namespace detail

// ---- members ----

template <class S> class Module;

namespace detail {
template <class S> struct Member {
    std::string name;
    Var<Array<S>> parameter;                 // empty for a buffer
    Array<S>* buffer = nullptr;              // numbers of the model that need no gradient
    bool transposed = false;                 // PyTorch stores this matrix transposed
    Array<std::int32_t>* counter = nullptr;  // a buffer of integers, which stays on the CPU
};

// The class `Members` collects the parameters, buffers and child modules that Module::list() adds.
template <class S> class Members {
public:
    // Skips an empty parameter, such as the bias of a layer that has no bias.
    void parameter(const std::string& name, const Var<Array<S>>& value) {
        if (value) add({prefix_ + name, value});
    }
    // Adds a matrix of shape (in, out), which PyTorch stores with the shape (out, in).
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
                throw Error("[module] '" + above.substr(0, above.size() - 1) + "' contains itself as '" +
                            prefix_ + name + "'; list only the parts of a module as its children");
        const std::string before = std::exchange(prefix_, prefix_ + name + ".");
        modules_.emplace_back(prefix_, &module);
        module.list(*this);
        prefix_ = before;
    }
    // ---- for the engine ----
    const std::vector<detail::Member<S>>& all() const { return all_; }
    // Returns all child modules. The name of each child ends with a dot.
    const std::vector<std::pair<std::string, Module<S>*>>& modules() const { return modules_; }
    // Assigns the first unused stream to each layer that draws random numbers and has no stream yet.
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
}  // namespace detail

// Divides each sequence of n layers into `segments` segments, or into segments that save at most `bytes`
// bytes. Setting both `segments` and `bytes` throws. If both are 0, a sequence has sqrt(n) segments.
struct Checkpointing {
    std::size_t segments = 0, bytes = 0;
};

// A `WeightOrder` is the layout of matrices in a file: (in, out) for tally or (out, in) for PyTorch.
enum class WeightOrder { tally, pytorch };

// A Module is a model or a part of a model.
template <class S> class Module {
public:
    using Members = detail::Members<S>;

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

    // Passes the module's members to `members`, always in the same order, under the names that PyTorch uses.
    // Only listed members are trained and saved. A module without members has an empty list().
    virtual void list(Members& members) = 0;

    // Returns the parameters. A parameter that several layers share is returned once, under its first name.
    std::vector<Var<Array<S>>> parameters();
    std::vector<std::pair<std::string, Var<Array<S>>>> named_parameters();
    // Moves the model to the device and frees the gradients of moved parameters. Variables that refer to a
    // parameter remain valid, so an optimizer can continue. The next step() also moves the optimizer's state.
    void to(Device device);

    // Saves parameters and buffers as a safetensors file, with the names that PyTorch uses. The file also
    // contains the layout of the matrices and a checksum of all bytes.
    void save_weights(const std::string& path, WeightOrder order = WeightOrder::tally);
    // Loads all weights, or throws and does not change the model. The `Error` lists all missing and unknown
    // tensors and all tensors with a wrong shape or type. If a file does not declare the layout of its
    // matrices, the caller must pass `order`. Throws if the file declares a different layout.
    void load_weights(const std::string& path, std::optional<WeightOrder> order = {});

    // ---- for authors of layers ----

    // Returns a pointer that stays correct when this module moves and becomes null when it is destroyed.
    const std::shared_ptr<Module*>& place() {
        if (!place_) place_ = std::make_shared<Module*>(this);
        return place_;
    }
    // Returns the side effect of this module that SideEffect::save() has saved, or null if none was saved.
    virtual std::unique_ptr<detail::SideEffect> saved_effect(const TrainingState&,
                                                             const std::string& /*prefix*/) {
        return nullptr;
    }
    // Turns on checkpointing and returns true if the module is a sequence of layers. Otherwise returns false.
    virtual bool checkpoint(const Checkpointing&) { return false; }
    virtual detail::LayerRng* stream() { return nullptr; }  // null for a layer that draws no random numbers

private:
    void point_here() {
        if (place_) *place_ = this;
    }

    std::shared_ptr<Module*> place_;
};

template <class S> void detail::Members<S>::assign_rng_streams(Module<S>& model) {
    std::map<std::uint64_t, std::string> given;
    std::vector<std::pair<std::size_t, detail::LayerRng*>> unassigned;
    std::set<const detail::LayerRng*> seen;
    const auto visit = [&](const std::string& name, Module<S>& module) {
        detail::LayerRng* const stream = module.stream();
        if (!stream || !seen.insert(stream).second) return;
        if (!stream->given())
            return void(unassigned.emplace_back(std::count(name.begin(), name.end(), '.'), stream));
        const auto [other, first] = given.emplace(*stream->given(), name);
        if (!first)
            throw Error("[module] '" + other->second.substr(0, other->second.size() - 1) + "' and '" +
                        name.substr(0, name.size() - 1) + "' are both given stream " +
                        std::to_string(*stream->given()) +
                        "; give them different streams, or none, so that each gets its own");
    };
    visit("", model);
    for (const auto& [name, module] : modules_) visit(name, *module);
    std::uint64_t next = 0;
    for (const auto& [depth, stream] : unassigned) {
        while (given.count(next)) ++next;
        stream->place(depth, next++);
    }
}

// A `Layer` is a `Module` with one input and one output.
template <class S> class Layer : public Module<S> {
public:
    Var<Array<S>> operator()(Var<Array<S>> x, ForwardPass& pass) { return forward(std::move(x), pass); }
    // Runs the layer as in evaluation.
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
// Lists the members of a model and assigns random streams to its layers.
template <class S> Members<S> collect_members(Module<S>& model) {
    Members<S> members;
    model.list(members);
    members.assign_rng_streams(model);
    return members;
}

template <class S> std::vector<Member<S>> members(Module<S>& model) { return collect_members(model).all(); }

// Returns the model with an empty name, and then all modules inside the model with their names.
template <class S> std::vector<std::pair<std::string, Module<S>*>> modules(Module<S>& model) {
    const Members<S> members = detail::collect_members(model);
    std::vector<std::pair<std::string, Module<S>*>> all{{"", &model}};
    all.insert(all.end(), members.modules().begin(), members.modules().end());
    return all;
}
}  // namespace detail

// Turns on checkpointing in the model's outermost sequences of layers, and returns their number.
template <class S> std::size_t checkpoint(Module<S>& model, const Checkpointing& how) {
    std::size_t chains = 0;
    std::vector<std::string> done;
    for (const auto& [name, module] : detail::modules(model)) {
        const auto within = [&name = name](const std::string& chain) { return name.rfind(chain, 0) == 0; };
        if (std::any_of(done.begin(), done.end(), within) || !module->checkpoint(how)) continue;
        done.push_back(name);
        ++chains;
    }
    return chains;
}

template <class S> std::vector<std::pair<std::string, Var<Array<S>>>> Module<S>::named_parameters() {
    std::vector<std::pair<std::string, Var<Array<S>>>> named;
    std::set<const void*> seen;
    for (const detail::Member<S>& member : detail::members(*this))
        if (member.parameter && seen.insert(member.parameter.node()).second)
            named.emplace_back(member.name, member.parameter);
    return named;
}

template <class S> std::vector<Var<Array<S>>> Module<S>::parameters() {
    std::vector<Var<Array<S>>> all;
    for (auto& [name, parameter] : named_parameters()) all.push_back(std::move(parameter));
    return all;
}

namespace detail {
// A PendingValue holds the next value of a parameter, a buffer or a counter. The constructor allocates all
// memory, so that commit() cannot fail and load() changes either all values or no value.
template <class S> class PendingValue {
public:
    PendingValue(const Var<Array<S>>& parameter, Array<S> numbers) : parameter_(parameter) {
        const ValueNode<Array<S>>& node = parameter_.node_or_throw("load");
        Var<Array<S>>::require_own_thread("load", node);
        detail::require_unlocked("assign", node);
        detail::require_not_averaged("load", node.grad_flags);
        if (node.state != detail::State::leaf || !detail::same_shape_and_device(node.value, numbers))
            throw Error("[load] a '" + std::string(node.op()) + "' of " + detail::describe(node.value) +
                        " cannot be replaced by " + detail::describe(numbers));
        detail::make_unique_buffer(numbers);  // because an optimizer will step the value in place
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
        // Increments the version counter, so that code that saved the old value can detect the change.
        if (memory::detail::Storage* const before = numbers_.storage()) {
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

template <class S> void Module<S>::to(Device device) {
    const std::vector<detail::Member<S>> all = detail::members(*this);
    std::vector<Array<S>> moved;  // allocated before the first member changes
    for (const detail::Member<S>& member : all) {
        if (member.parameter) {
            member.parameter.require_own_thread("to", *member.parameter.node());
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

extern template class detail::Members<float>;
extern template class detail::Members<double>;

}  // namespace tally
