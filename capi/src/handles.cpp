#include "capi/src/handles.h"

#include <unistd.h>

#include <deque>
#include <unordered_map>

#include "capi/src/guard.h"
#include "core/base/log.h"
#include "core/ops/op_def.h"

namespace yoke::capi {

namespace {

constexpr int kGenerationShift = 48;  // addresses of a process have no more bits
constexpr uint16_t kGenerations = 0x7fff;
constexpr size_t kRemembered = 1 << 16;  // released handles whose details are kept

const char *name_of(HandleKind kind)
{
    constexpr const char *names[] = {"handle",
                                     "device",
                                     "tensor",
                                     "stream",
                                     "event",
                                     "graph",
                                     "autocast region",
                                     "optimizer",
                                     "grad scaler",
                                     "EMA",
                                     "inventory",
                                     "report",
                                     "explanation",
                                     "checkpoint scope",
                                     "memory budget",
                                     "state",
                                     "work",
                                     "checkpoint manager",
                                     "group",
                                     "reducer",
                                     "sampler",
                                     "hook"};
    static_assert(std::size(names) == static_cast<size_t>(HandleKind::kCount));
    return names[static_cast<size_t>(kind)];
}

uintptr_t address_of(const void *handle)
{
    return reinterpret_cast<uintptr_t>(handle) & ((uintptr_t{1} << kGenerationShift) - 1);
}

uintptr_t generation_of(const void *handle)
{
    return reinterpret_cast<uintptr_t>(handle) >> kGenerationShift;
}

[[noreturn]] void fail_handle(yoke_status status, const char *call, const char *argument,
                              const void *handle, const char *why)
{
    const std::string text =
        format("%s: argument '%s' (%p) %s", short_name(call), argument, handle, why);
    log(LogLevel::kError, "%s", text.c_str());
    throw Error(status, text);
}

// Knowledge about the handle at an address.
struct Known {
    uint16_t generation = 0;
    HandleKind kind = HandleKind::kNone;
    bool lent = false;  // shown without a reference
    int64_t given = 0;  // references of the host program
};

// End of a handle: description of the object, call and thread.
struct End {
    std::string what;
    const char *call;
    long thread;
};

class Registry {
public:
    void *enter(void *object, HandleKind kind, bool given)
    {
        const std::lock_guard lock(mutex_);
        Known &known = known_[address_of(object)];
        const bool same = known.kind == kind && (known.given > 0 || known.lent);
        if (!same || (given && known.given == 0)) known = {next(known.generation), kind, false, 0};
        known.given += given;
        known.lent |= !given;
        return with_generation(object, known.generation);
    }

    void *find(void *handle, HandleKind kind, const char *call, const char *argument)
    {
        {
            const std::lock_guard lock(mutex_);
            if (live(handle, kind)) return object_at(handle);
        }
        tell(handle, kind, call, argument);
    }

    void *retain(void *handle, HandleKind kind, const char *call)
    {
        {
            const std::lock_guard lock(mutex_);
            if (Known *known = live(handle, kind)) {
                ++known->given;
                return object_at(handle);
            }
        }
        tell(handle, kind, call, name_of(kind));
    }

    void *take_back(void *handle, HandleKind kind, const char *call)
    {
        void *object = find(handle, kind, call, name_of(kind));
        std::string what = kind == HandleKind::kTensor
                               ? "the tensor " + describe(*static_cast<yoke_tensor *>(object))
                               : std::string("the ") + name_of(kind);
        {
            const std::lock_guard lock(mutex_);
            Known *known = live(handle, kind);
            if (known && known->given > 0) {
                if (--known->given == 0) bury(handle, {std::move(what), call, gettid()});
                return object;
            }
        }
        tell(handle, kind, call, name_of(kind));
    }

private:
    static uint16_t next(uint16_t generation)
    {
        return static_cast<uint16_t>(generation % kGenerations + 1);
    }
    static void *with_generation(void *object, uint16_t generation)
    {
        return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(object) |
                                        uintptr_t{generation} << kGenerationShift);
    }
    static void *object_at(void *handle) { return reinterpret_cast<void *>(address_of(handle)); }

    // Returns the entry of a usable handle, else nullptr. The caller holds the lock.
    Known *live(const void *handle, HandleKind kind)
    {
        const auto found = known_.find(address_of(handle));
        if (found == known_.end()) return nullptr;
        Known &known = found->second;
        const bool good =
            reinterpret_cast<uintptr_t>(handle) >> kGenerationShift == known.generation &&
            known.kind == kind && (known.given > 0 || known.lent);
        return good ? &known : nullptr;
    }

    void bury(const void *handle, End end)
    {
        ended_.insert_or_assign(reinterpret_cast<uintptr_t>(handle), std::move(end));
        order_.push_back(reinterpret_cast<uintptr_t>(handle));
        if (order_.size() <= kRemembered) return;
        ended_.erase(order_.front());
        order_.pop_front();
    }

    // Raises and logs why a handle is not valid.
    [[noreturn]] void tell(const void *handle, HandleKind kind, const char *call,
                           const char *argument)
    {
        const auto [status, why] = reason(handle, kind);
        fail_handle(status, call, argument, handle, why.c_str());
    }
    struct Reason {
        yoke_status status;
        std::string text;
    };
    Reason reason(const void *handle, HandleKind kind)
    {
        const std::lock_guard lock(mutex_);
        const auto ended = ended_.find(reinterpret_cast<uintptr_t>(handle));
        if (ended != ended_.end()) {
            const End &end = ended->second;
            return {
                YOKE_E_CLOSED,
                format(
                    "was %s until %s released its last reference, in thread %ld; keep a reference while you use the handle",
                    end.what.c_str(), end.call, end.thread)};
        }
        const auto found = known_.find(address_of(handle));
        const bool is_latest =
            found != known_.end() && generation_of(handle) == found->second.generation;
        if (is_latest && found->second.kind != kind)
            return {YOKE_E_TYPE, format("is a handle of kind '%s'; it must be of kind '%s'",
                                        name_of(found->second.kind), name_of(kind))};
        if (is_latest && found->second.lent)
            return {YOKE_E_STATE, "belongs to its owner, so the caller must not release it"};
        if (found == known_.end() || generation_of(handle) == 0)
            return {YOKE_E_VALUE,
                    format("is not a valid %s handle; give a handle that a call of Yoke returned",
                           name_of(kind))};
        return {
            YOKE_E_CLOSED,
            format(
                "is no longer a %s: it was released, and more than %zu other handles were released since",
                name_of(kind), kRemembered)};
    }
    Mutex mutex_{LockRank::kOther};
    std::unordered_map<uintptr_t, Known> known_;
    std::unordered_map<uintptr_t, End> ended_;
    std::deque<uintptr_t> order_;  // ended handles, oldest first
};

Registry &registry()
{
    static std::atomic<Registry *> place{nullptr};
    return make_once(place, [] { return new Registry; });
}

void *find_device(void *handle, const char *call, const char *argument)
{
    for (Device *device : opened_devices())
        if (device == handle) return handle;
    fail_handle(YOKE_E_VALUE, call, argument, handle,
                "is not a valid device handle; give a handle that a call of Yoke returned");
}

}  // namespace

std::unique_ptr<ResolvedLists> resolve(yoke_arg *args, int count, const OpDef &op, const char *call)
{
    auto lists = std::make_unique<ResolvedLists>();
    for (int i = 0; i < count; ++i) {
        yoke_arg &value = args[i];
        const char *name = op.args[i].name;
        if (value.kind == YOKE_ARG_TENSOR)
            value.v.tensor = object_of(value.v.tensor, call, name);
        else if (value.kind == YOKE_ARG_DEVICE)
            value.v.device = object_of(value.v.device, call, name);
        if (value.kind != YOKE_ARG_TENSORS) continue;
        std::vector<yoke_tensor *> &list = lists->emplace_back();
        for (int k = 0; k < value.count; ++k)
            list.push_back(object_of(value.v.tensors[k], call, name));
        value.v.tensors = list.data();
    }
    return lists;
}

constinit Switch detail::checks("YOKE_CHECKS", try_config);

void *detail::register_handle(void *object, HandleKind kind, bool given)
{
    return registry().enter(object, kind, given);
}

void *detail::find(void *handle, HandleKind kind, const char *call, const char *argument)
{
    if (kind == HandleKind::kDevice) return find_device(handle, call, argument);
    return registry().find(handle, kind, call, argument);
}

void *detail::retain(void *handle, HandleKind kind, const char *call) noexcept
{
    return guard_value(call, static_cast<void *>(nullptr), [&] {
        return kind == HandleKind::kDevice ? find_device(handle, call, "device")
                                           : registry().retain(handle, kind, call);
    });
}

void *detail::take_back(void *handle, HandleKind kind, const char *call) noexcept
{
    return guard_value(call, static_cast<void *>(nullptr), [&] {
        return kind == HandleKind::kDevice ? find_device(handle, call, "device")
                                           : registry().take_back(handle, kind, call);
    });
}

}  // namespace yoke::capi
