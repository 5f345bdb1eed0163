#include "capi/src/guard.h"

#include <new>

namespace yoke::capi {

yoke_status keep_exception(const char *call) noexcept
{
    try {
        throw;
    } catch (const Error &error) {
        store_last_error(error.status(), call, error.what(), error.native_code(), error.device());
        return error.status();
    } catch (const std::bad_alloc &) {
        store_last_error(YOKE_E_OOM, call, kNoMemoryText, 0);
        return YOKE_E_OOM;
    } catch (const std::exception &error) {
        store_last_error(YOKE_E_INTERNAL, call, error.what(), 0);
    } catch (...) {
        store_last_error(YOKE_E_INTERNAL, call, "an exception of unknown type; please report it",
                         0);
    }
    return YOKE_E_INTERNAL;
}

void fail_null(const char *call, const char *argument, const char *remedy)
{
    fail(YOKE_E_VALUE, "%s: argument '%s' is NULL; %s", short_name(call), argument, remedy);
}

void fail_null(const char *call, const char *argument)
{
    fail(YOKE_E_VALUE, "%s: argument '%s' is NULL; it must be given", short_name(call), argument);
}

void check_list(const void *items, int64_t count, const char *call, const char *argument)
{
    if (count < 0)
        fail(YOKE_E_VALUE, "%s: the count of argument '%s' is %lld; it cannot be negative",
             short_name(call), argument, static_cast<long long>(count));
    if (count > 0 && !items)
        fail(YOKE_E_VALUE,
             "%s: argument '%s' is NULL, but its count is %lld; give a pointer to the items",
             short_name(call), argument, static_cast<long long>(count));
}

Tensors::Tensors(yoke_tensor *const *items, int64_t count, const char *call, const char *argument,
                 bool optional)
    : list_(need_list(items, count, call, argument))
{
    for (size_t i = 0; i < list_.size() && !optional; ++i)
        if (!list_[i])
            fail(YOKE_E_VALUE, "%s: item %zu of argument '%s' is NULL; it must be a handle",
                 short_name(call), i, argument);
    if (!checks_handles()) return;
    for (yoke_tensor *handle : list_) found_.push_back(object_of(handle, call, argument));
    list_ = found_;
}

IntList need_shape(const int64_t *shape, int64_t ndim, const char *call)
{
    const IntList list = need_list(shape, ndim, call, "shape");
    if (ndim > YOKE_MAX_NDIM)
        fail(YOKE_E_VALUE, "%s: argument 'ndim' is %lld; a tensor has at most %d axes",
             short_name(call), static_cast<long long>(ndim), YOKE_MAX_NDIM);
    return list;
}

}  // namespace yoke::capi
