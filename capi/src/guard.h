// guard.h: the only border between exceptions and status codes.
//
// Every function of the C API that can fail runs its body in guard(): an error of the core becomes a status, and its
// details become the calling thread's last error. Success changes neither. This is the only try/catch of the C API.
#pragma once

#include "capi/src/handles.h"
#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/base/thread_state.h"
#include "core/base/turn.h"
#include "core/device/device.h"
#include "core/select/select.h"

#include <string_view>
#include <vector>

namespace yoke::capi {

// Stores the exception of the running catch block as the last error of `call` ("yoke_softmax"), and returns its
// status.
__attribute__((cold, noinline)) yoke_status keep_exception(const char *call) noexcept;

// Runs the body of a function. Returns YOKE_OK; after an exception, stores the last error and returns its status.
template <class Body>
yoke_status guard(const char *call, Body &&body) noexcept
{
    try {
        thread_state();  // first: later code may need the state where raising is impossible
        body();
        return YOKE_OK;
    } catch (...) {
        return keep_exception(call);
    }
}

// Exclusive use of an object by a single thread, for the lifetime of this guard.
template <class T>
class InTurn {
public:
    InTurn(T &object, const char *call, const char *what)
        : turn_(object.turns, call + sizeof("yoke_") - 1, what), object_(object)
    {
    }
    T *operator->() const { return &object_; }
    T &operator*() const { return object_; }

private:
    const Turn turn_;
    T &object_;
};

// Runs the body of a function with a direct result, and returns the result. After an exception, stores the last error
// and returns `missing`.
template <class T, class Body>
T guard_value(const char *call, T missing, Body &&body) noexcept
{
    try {
        thread_state();
        return body();
    } catch (...) {
        keep_exception(call);
        return missing;
    }
}

// Returns the name of a call in messages: without the prefix that only C has.
inline const char *short_name(const char *call)
{
    return call + sizeof("yoke_") - 1;
}

// Returns the name of a call of groups and works in scripts: also without the class or module.
inline const char *said_name(const char *call)
{
    const char *name = short_name(call);
    for (const std::string_view before : {"group_", "comm_", "work_"})
        if (std::string_view(name).starts_with(before)) return name + before.size();
    return name;
}

// Raise YOKE_E_VALUE with the remedy, such as "give what began it"; without a remedy, "it must be given".
[[noreturn]] __attribute__((cold, noinline)) void fail_null(const char *call, const char *argument,
                                                            const char *remedy);
[[noreturn]] __attribute__((cold, noinline)) void fail_null(const char *call, const char *argument);

// Returns the object of a pointer or handle. Raises YOKE_E_VALUE for NULL, with the remedy if given.
template <class T, class... Remedy>
auto &need(T *pointer, const char *call, const char *argument, Remedy... remedy)
{
    if (!pointer) [[unlikely]]
        fail_null(call, argument, remedy...);
    if constexpr (kIsHandle<T>)
        return *object_of(pointer, call, argument);
    else
        return *pointer;
}

// Returns a handle's object with a reference, so that the object outlives the call. Raises as need() does.
template <class Handle, class... Remedy>
auto need_ref(Handle *handle, const char *call, const char *argument, Remedy... remedy)
{
    return Ref<typename HandleOf<Handle>::Object>::share(&need(handle, call, argument, remedy...));
}

// Returns a handle's object with a reference, or no object for NULL.
template <class Handle>
auto optional_ref(Handle *handle, const char *call, const char *argument)
{
    using Object = Ref<typename HandleOf<Handle>::Object>;
    return handle ? Object::share(object_of(handle, call, argument)) : Object();
}

// Returns an object in this thread's turn. Raises YOKE_E_VALUE for NULL.
template <class Handle>
InTurn<Handle> in_turn(Handle *handle, const char *call, const char *argument)
{
    return {need(handle, call, argument), call, argument};
}

// Returns the place of an output, and sets it to NULL until the call has succeeded. Raises YOKE_E_VALUE for a missing
// output.
template <class T>
T *&need_out(T **out, const char *call, const char *argument = "out")
{
    T *&place = need(out, call, argument);
    place = nullptr;
    return place;
}

// Raise YOKE_E_VALUE for a negative count, and for NULL with a count above 0. need_list() returns the `count` items
// behind the pointer.
__attribute__((cold)) void check_list(const void *items, int64_t count, const char *call,
                                      const char *argument);
template <class T>
std::span<T> need_list(T *items, int64_t count, const char *call, const char *argument)
{
    if (count < 0 || (count > 0 && !items)) [[unlikely]]
        check_list(items, count, call, argument);
    return {items, static_cast<size_t>(count)};
}

// Returns the sizes of a tensor's axes. Raises YOKE_E_VALUE as need_list() does, and for more than YOKE_MAX_NDIM
// axes.
IntList need_shape(const int64_t *shape, int64_t ndim, const char *call);

// Tensors behind a caller's list of handles.
class Tensors {
public:
    // Looks the tensors up. Raises YOKE_E_VALUE for a NULL among them, unless `optional`.
    Tensors(yoke_tensor *const *items, int64_t count, const char *call, const char *argument,
            bool optional = false);
    operator std::span<yoke_tensor *const>() const { return list_; }
    size_t size() const { return list_.size(); }
    bool empty() const { return list_.empty(); }

private:
    std::span<yoke_tensor *const> list_;
    std::vector<yoke_tensor *> found_;  // in the checking mode, where a handle is not the object
};
inline Tensors need_tensors(yoke_tensor *const *items, int64_t count, const char *call,
                            const char *argument)
{
    return Tensors(items, count, call, argument);
}

inline Device &device_or_current(yoke_device *device)
{
    return device ? need(device, "yoke_device", "device") : current_device();
}

}  // namespace yoke::capi
