// handles.h: border between objects and their handles in C, and the checking mode of the handles (YOKE_CHECKS=1).
//
// A handle is the address of its object. In the checking mode a handle also carries a generation number in unused
// address bits, and the table counts the host program's references by each handle. A released handle, a handle of
// another kind and an unknown handle are errors with the call that released the handle, even if the address is in use
// again. The mode is read with the first handle; while the mode is off, a handle costs one look at a flag.
#pragma once

#include "core/base/config.h"
#include "core/tensor/tensor.h"
#include "yoke/yoke.h"

#include <memory>
#include <vector>

namespace yoke {

class Graph;
class Autocast;
class CheckpointManager;
class Group;
class HookEntry;
class MemoryBudget;
class Scope;
class State;
class Work;
struct OpDef;

namespace capi {

enum class HandleKind : uint8_t {
    kNone,
    kDevice,  // lives as long as the library, so these are the devices that are open
    kTensor,
    kStream,
    kEvent,
    kGraph,
    kAutocast,
    kOptimizer,
    kGradScaler,
    kEma,
    kInventory,
    kReport,
    kExplanation,
    kCheckpoint,
    kMemoryBudget,
    kState,
    kWork,
    kCheckpointManager,
    kGroup,
    kReducer,
    kSampler,
    kHook,
    kCount,
};

// Object type of a handle type. The object has retain() and release(), or a function of its own gives the object
// back.
template <class Handle>
struct HandleOf {
    static constexpr HandleKind kind = HandleKind::kNone;
    using Object = Handle;
};
template <HandleKind kKind, class T>
struct IsHandle {
    static constexpr HandleKind kind = kKind;
    using Object = T;
};
// clang-format off
template <> struct HandleOf<yoke_device> : IsHandle<HandleKind::kDevice, yoke_device> {};
template <> struct HandleOf<yoke_tensor> : IsHandle<HandleKind::kTensor, yoke_tensor> {};
template <> struct HandleOf<yoke_stream> : IsHandle<HandleKind::kStream, yoke_stream> {};
template <> struct HandleOf<yoke_event> : IsHandle<HandleKind::kEvent, yoke_event> {};
template <> struct HandleOf<yoke_graph> : IsHandle<HandleKind::kGraph, Graph> {};
template <> struct HandleOf<yoke_autocast> : IsHandle<HandleKind::kAutocast, Autocast> {};
template <> struct HandleOf<yoke_checkpoint> : IsHandle<HandleKind::kCheckpoint, Scope> {};
template <> struct HandleOf<yoke_memory_budget> : IsHandle<HandleKind::kMemoryBudget, MemoryBudget> {};
template <> struct HandleOf<yoke_state> : IsHandle<HandleKind::kState, State> {};
template <> struct HandleOf<yoke_work> : IsHandle<HandleKind::kWork, Work> {};
template <> struct HandleOf<yoke_checkpoint_manager> : IsHandle<HandleKind::kCheckpointManager, CheckpointManager> {};
template <> struct HandleOf<yoke_group> : IsHandle<HandleKind::kGroup, Group> {};
template <> struct HandleOf<yoke_reducer> : IsHandle<HandleKind::kReducer, yoke_reducer> {};
template <> struct HandleOf<yoke_sampler> : IsHandle<HandleKind::kSampler, yoke_sampler> {};
template <> struct HandleOf<yoke_hook> : IsHandle<HandleKind::kHook, HookEntry> {};
template <> struct HandleOf<yoke_optimizer> : IsHandle<HandleKind::kOptimizer, yoke_optimizer> {};
template <> struct HandleOf<yoke_grad_scaler> : IsHandle<HandleKind::kGradScaler, yoke_grad_scaler> {};
template <> struct HandleOf<yoke_ema> : IsHandle<HandleKind::kEma, yoke_ema> {};
template <> struct HandleOf<yoke_inventory> : IsHandle<HandleKind::kInventory, yoke_inventory> {};
template <> struct HandleOf<yoke_report> : IsHandle<HandleKind::kReport, yoke_report> {};
template <> struct HandleOf<yoke_explanation> : IsHandle<HandleKind::kExplanation, yoke_explanation> {};
// clang-format on
template <class Handle>
inline constexpr bool kIsHandle = HandleOf<Handle>::kind != HandleKind::kNone;

namespace detail {
extern Switch checks;

// Returns the object of a handle in the checking mode. Raises for a released or unknown handle, and for a handle of
// another kind.
void *find(void *handle, HandleKind kind, const char *call, const char *argument);
// Count a reference of the host program up or down. For an invalid handle the error is stored and logged, and the
// result is nullptr, else the object.
void *retain(void *handle, HandleKind kind, const char *call) noexcept;
void *take_back(void *handle, HandleKind kind, const char *call) noexcept;
// Returns the handle of an object in the checking mode: `given` with a reference, or merely shown.
void *register_handle(void *object, HandleKind kind, bool given);
}  // namespace detail

inline bool checks_handles() noexcept
{
    return detail::checks.is_on();
}

// Returns the object behind a handle; NULL gives NULL. In the checking mode, raises for an invalid handle.
template <class Handle>
auto *object_of(Handle *handle, const char *call, const char *argument)
{
    using Object = typename HandleOf<Handle>::Object;
    if (checks_handles() && handle) [[unlikely]]
        return static_cast<Object *>(detail::find(handle, HandleOf<Handle>::kind, call, argument));
    return reinterpret_cast<Object *>(handle);
}

// Lists of objects in place of the lists of handles in an op's arguments.
using ResolvedLists = std::vector<std::vector<yoke_tensor *>>;
// Replaces handles in an op's arguments by their objects. Lists live as long as the result.
std::unique_ptr<ResolvedLists> resolve(yoke_arg *args, int count, const OpDef &op,
                                       const char *call);
// Replaces handles as resolve() does in the checking mode. Else the handles are the objects, and the result is null.
inline std::unique_ptr<ResolvedLists> resolve_args(yoke_arg *args, int count, const OpDef &op,
                                                   const char *call)
{
    return checks_handles() ? resolve(args, count, op, call) : nullptr;
}

// Returns the handle with which the caller holds the reference. An absent object has no handle.
template <class Handle, class T>
Handle *hand_out(Ref<T> object)
{
    void *handle = static_cast<typename HandleOf<Handle>::Object *>(object.get());
    if (checks_handles() && handle) [[unlikely]]
        handle = detail::register_handle(handle, HandleOf<Handle>::kind, true);
    (void)object.detach();
    return static_cast<Handle *>(handle);
}
template <class Handle>
Handle *hand_out(std::unique_ptr<Handle> object)
{
    void *handle = object.get();
    if (checks_handles()) [[unlikely]]
        handle = detail::register_handle(handle, HandleOf<Handle>::kind, true);
    (void)object.release();
    return static_cast<Handle *>(handle);
}
inline yoke_tensor *hand_out(Ref<yoke_tensor> tensor)
{
    return hand_out<yoke_tensor>(std::move(tensor));
}
// Returns the handle of a borrowed object, without a reference for the caller.
template <class Handle, class T>
Handle *lend(T *object)
{
    if (checks_handles() && object) [[unlikely]]
        return static_cast<Handle *>(
            detail::register_handle(object, HandleOf<Handle>::kind, false));
    return reinterpret_cast<Handle *>(object);
}

// Adds a reference of the caller to the object and returns the handle, as yoke_x_retain does. Returns NULL for NULL,
// and for an invalid handle in the checking mode.
template <class Handle>
Handle *retain_handle(Handle *handle, const char *call) noexcept
{
    using Object = typename HandleOf<Handle>::Object;
    void *object = handle;
    if (checks_handles() && handle) [[unlikely]]
        object = detail::retain(handle, HandleOf<Handle>::kind, call);
    if (!object) return nullptr;
    static_cast<Object *>(object)->retain();
    return handle;
}
// Returns the object whose reference the caller gives up; nullptr if there is no object.
template <class Handle>
auto *take_back(Handle *handle, const char *call) noexcept
{
    void *object = handle;
    if (checks_handles() && handle) [[unlikely]]
        object = detail::take_back(handle, HandleOf<Handle>::kind, call);
    return static_cast<typename HandleOf<Handle>::Object *>(object);
}
template <class Handle>
void release_handle(Handle *handle, const char *call) noexcept
{
    if (auto *object = take_back(handle, call)) object->release();
}

}  // namespace capi
}  // namespace yoke
