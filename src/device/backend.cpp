// Finds and loads the device module when the device is first used, and throws errors that the module records.
#include "tally/device/backend.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tally/base/error.hpp"
#include "tally/device/backend_abi.hpp"
#include "tally/kernels/dual.hpp"
#include "tally/kernels/kernel_slots.hpp"

namespace tally::backend {

namespace {

namespace fs = std::filesystem;

// ---- the error of the current call ----

// The pointer has no destructor, because arrays may be freed after thread_local objects have been destroyed.
constinit thread_local std::exception_ptr* failure = nullptr;

void record_failure(std::exception_ptr error) {
    if (failure == nullptr) failure = new std::exception_ptr(std::move(error));  // the first error
}

std::exception_ptr take_failure() {
    const std::unique_ptr<std::exception_ptr> taken(std::exchange(failure, nullptr));
    return *taken;
}

inline void require_success() {
    if (failure != nullptr) [[unlikely]]
        std::rethrow_exception(take_failure());
}

constexpr HostApi host{
    .allocate = [](std::size_t bytes) noexcept -> memory::detail::Storage* {
        try {
            return memory::detail::allocate(bytes, Device::cuda);
        } catch (...) {
            record_failure(std::current_exception());
            return nullptr;
        }
    },
    .unref = [](memory::detail::Storage* storage) noexcept { memory::detail::unref(storage); },
    .budget = []() noexcept { return memory::detail::budget(Device::cuda); },
    .products = []() noexcept { return tally::products(); },
    .failed = [](const char* words) noexcept { record_failure(std::make_exception_ptr(Error(words))); },
};

// ---- finding and loading ----

struct Choice {
    std::mutex mutex;
    std::string module = "cuda";
    bool made = false;  // the module has been searched for and can no longer be changed
};
Choice& choice() {
    static Choice& only = *new Choice;
    return only;
}

bool is_path(const std::string& module) { return module.find('/') != std::string::npos; }

void add_folders_near(std::vector<fs::path>& folders, const fs::path& binary) {
    std::error_code unknown;
    const fs::path folder = fs::canonical(binary, unknown).parent_path();
    if (unknown) return;
    folders.push_back(folder / "tally");
    if (folder.filename() == "bin") folders.push_back(folder.parent_path() / TALLY_LIBRARY_FOLDER / "tally");
}

std::vector<fs::path> candidates(const std::string& module) {
    if (is_path(module)) return {module};
    std::vector<fs::path> folders;
    Dl_info own{};
    if (dladdr(&host, &own) != 0 && is_path(own.dli_fname)) add_folders_near(folders, own.dli_fname);
    add_folders_near(folders, "/proc/self/exe");
    folders.emplace_back(TALLY_BUILT_MODULES);
    folders.emplace_back(TALLY_INSTALLED_MODULES);
    for (fs::path& folder : folders) folder /= "tally_" + module + ".so";
    return folders;
}

struct Loaded {
    const Table* table = nullptr;
    std::string why;  // the reason if `table` is null
};

// Tries to load a device module from `file`. Returns false if the caller should try the next file.
bool load(Loaded& loaded, const fs::path& file) {
    const auto reject = [&](const std::string& words) {
        if (loaded.why.empty()) loaded.why = words;
        return false;
    };
    void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (module == nullptr) return reject(std::string("its module cannot be loaded: ") + dlerror());
    const auto* const theirs = static_cast<const AbiVersion*>(dlsym(module, stamp_name));
    const auto open = reinterpret_cast<Open>(dlsym(module, open_name));
    if (theirs == nullptr || open == nullptr) return reject(file.string() + " is not a module of tally");
    if (std::string_view(theirs->version, sizeof theirs->version) !=
        std::string_view(stamp.version, sizeof stamp.version))
        return reject(file.string() + " belongs to tally " +
                      std::string(theirs->version, strnlen(theirs->version, sizeof theirs->version)) +
                      ", and this is tally " + stamp.version);
    if (*theirs != stamp)
        return reject(file.string() + " belongs to another build of tally " + stamp.version);
    loaded.table = open(&host);
    loaded.why.clear();
    if (loaded.table == nullptr) {
        try {
            std::rethrow_exception(take_failure());
        } catch (const std::exception& error) {
            loaded.why = error.what();
        }
    }
    return true;
}

Loaded find() {
    std::string module;
    {
        const std::lock_guard lock(choice().mutex);
        const char* const named = std::getenv("TALLY_GPU_MODULE");
        if (named != nullptr && *named != '\0') choice().module = named;
        module = choice().module;
        choice().made = true;
    }
    Loaded loaded;
    const bool cuda = module == "cuda";
    const std::string missing = cuda ? "this build has no CUDA" : "device '" + module + "' was not found";
    bool seen = false;
    for (const fs::path& file : candidates(module)) {
        std::error_code unknown;
        if (!is_path(module) && !fs::exists(file, unknown)) continue;
        seen = true;
        if (load(loaded, file)) return loaded;
    }
    const char* const way_out =
        cuda ? "; configure with -DTALLY_CUDA=ON, or name its module in TALLY_GPU_MODULE"
             : "; name its module in TALLY_GPU_MODULE";
    loaded.why = missing + (seen ? ": " + loaded.why : way_out);
    return loaded;
}

constinit std::atomic<const Table*> in_use = nullptr;  // for functions that must not load the module

const Loaded& loaded() {
    static const Loaded& only = []() -> const Loaded& {
        const Loaded& found = *new Loaded(find());
        in_use.store(found.table, std::memory_order_release);
        return found;
    }();
    return only;
}

const Table& table(const char* call) {
    const Loaded& found = loaded();
    if (found.table == nullptr) throw Error(std::string("[") + call + "] " + found.why);
    return *found.table;
}

// ---- the functions that the engine calls: these call the module and throw the recorded error ----

template <class Function, class... Arguments> auto through(Function function, Arguments&&... arguments) {
    if constexpr (std::is_void_v<decltype(function(arguments...))>) {
        function(arguments...);
        require_success();
    } else {
        const auto result = function(arguments...);
        require_success();
        return result;
    }
}

template <class S> struct PeerModule {
    static inline std::array<detail::AnyFunction, detail::kernel_slots<S>> slots{};
};

template <class S> struct ThrowOnError {
    template <std::size_t i> struct Slot {
        template <class... Arguments> using Function = void(Arguments...);
        template <class... Arguments> constexpr operator Function<Arguments...>*() const {
            return [](Arguments... arguments) {
                reinterpret_cast<Function<Arguments...>*>(PeerModule<S>::slots[i])(arguments...);
                require_success();
            };
        }
    };
};

template <class S> const detail::Kernels<S>& throwing(const detail::Kernels<S>& theirs) {
    static constexpr detail::Kernels<S> made = detail::each_slot<S, ThrowOnError<S>::template Slot>();
    static const bool known = (PeerModule<S>::slots = detail::slots_of(theirs), true);
    static_cast<void>(known);
    return made;
}

}  // namespace

void select(const std::string& module) {
    Choice& now = choice();
    const std::lock_guard lock(now.mutex);
    const Table* const in_place = in_use.load(std::memory_order_acquire);
    const bool by_path = in_place != nullptr && module == in_place->name;
    if (now.made && now.module != module && !by_path)
        throw Error("[device] '" + module + "' comes too late: the device in use is '" + now.module +
                    "'; select a module before the device is first used");
    if (!now.made) now.module = module;
}

const std::string& unavailable_reason() { return loaded().why; }

std::string name() {
    const Table* const in_place = in_use.load(std::memory_order_acquire);
    return in_place != nullptr ? in_place->name : "cuda";
}

std::uint64_t waits() {
    const Table* const in_place = in_use.load(std::memory_order_acquire);
    return in_place != nullptr ? through(in_place->waits) : 0;
}

const memory::Raw& raw() {
    table("memory");
    static constexpr memory::Raw made{
        [](std::size_t bytes) { return through(loaded().table->raw.allocate, bytes); },
        [](void* data, std::size_t bytes) { through(loaded().table->raw.free, data, bytes); },
        [](void* data, unsigned char byte, std::size_t bytes) {
            through(loaded().table->raw.fill, data, byte, bytes);
        }};
    return made;
}

void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes) {
    const Table& in_place = table("to");
    if (bytes != 0) through(in_place.copy, to, to_device, from, from_device, bytes);
}

template <> const detail::Kernels<float>& kernels() { return throwing(*table("kernels").in_float); }
template <> const detail::Kernels<double>& kernels() { return throwing(*table("kernels").in_double); }
template <> const detail::Kernels<Dual<double>>& kernels() {
    table("kernels");
    throw Error("[kernels] dual numbers are computed on the CPU only; use to(Device::cpu)");
}

void wait_after_each_launch(bool wait) { through(table("kernels").wait_after_each_launch, wait); }
void* pinned_alloc(std::size_t bytes) { return through(table("memory").pinned_alloc, bytes); }

}  // namespace tally::backend
