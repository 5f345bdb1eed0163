// The functions of tensor.h that are made of ops: values, copies between devices and dtypes, indexing.
#include "capi/src/guard.h"
#include "capi/src/indexing.h"
#include "core/autograd/node.h"
#include "core/ops/move.h"
#include "core/ops/ops.h"
#include "yoke/tensor.h"

#include <cmath>

using namespace yoke;
using namespace yoke::capi;

namespace {

// A caller's key, with the tensors behind its handles.
class Key {
public:
    Key(const yoke_index *items, int64_t count, const char *call)
        : items_(need_list(items, count, call, "items"))
    {
        if (!checks_handles()) return;
        found_.assign(items_.begin(), items_.end());
        for (yoke_index &item : found_)
            if (item.kind == YOKE_INDEX_TENSOR) item.tensor = object_of(item.tensor, call, "items");
        items_ = found_;
    }
    operator Items() const { return items_; }

private:
    Items items_;
    std::vector<yoke_index> found_;
};

// Names of the calls in messages: x[...] and x.item() in scripts.
constexpr const char *kIndexing = "indexing";
constexpr const char *kItem = "item";

// Returns the only element of x as a T; `dtype` is the dtype of T.
template <class T>
T item(const yoke_tensor &x, yoke_dtype dtype, const char *call)
{
    if (x.numel != 1)
        fail(YOKE_E_VALUE, "%s: the tensor %s has %lld elements; it must have one element", call,
             describe(x).c_str(), static_cast<long long>(x.numel));
    const NoGrad no_grad;
    const Tensor converted = ops::cast(x, dtype);
    T value;
    copy_to_host(*converted, &value, sizeof value, call);
    return value;
}

int64_t whole_number(double value, const char *call)
{
    if (!(value >= -0x1p63 && value < 0x1p63))
        fail(YOKE_E_VALUE, "%s: the value %g does not fit into an int64", call, value);
    return static_cast<int64_t>(value);
}

yoke_status to(const char *call, yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype,
               bool non_blocking, yoke_tensor **out) noexcept
{
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        yoke_tensor &x = need(tensor, call, "tensor");
        if (dtype != YOKE_NONE) check_dtype(dtype, short_name(call));
        Device &where = device ? need(device, call, "device") : *x.device;
        const yoke_dtype wanted = dtype == YOKE_NONE ? x.dtype : dtype;
        place = hand_out(convert_to(x, where, wanted, non_blocking));
    });
}

}  // namespace

yoke_status yoke_tensor_scalar(const yoke_scalar *value, yoke_dtype dtype, yoke_device *device,
                               yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_scalar";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        if (!is_scalar(need(value, call, "value")))
            fail(
                YOKE_E_TYPE,
                "%s: argument 'value' has kind %d; the kind of a scalar must be YOKE_ARG_BOOL, _INT or _FLOAT",
                short_name(call), value->kind);
        place = hand_out(ops::full({}, *value, dtype, object_of(device, call, "device")));
    });
}

yoke_status yoke_tensor_copy_to_host(yoke_tensor *tensor, void *data, int64_t bytes)
{
    constexpr const char *call = "yoke_tensor_copy_to_host";
    return guard(call, [&] {
        const yoke_tensor &x = need(tensor, call, "tensor");
        need_list(static_cast<char *>(data), bytes, call, "data");
        const NoGrad no_grad;
        const Tensor dense = x.contiguous ? alias(x) : ops::contiguous(x);
        copy_to_host(*dense, data, static_cast<uint64_t>(bytes), short_name(call));
    });
}

yoke_status yoke_tensor_copy_from_host(yoke_tensor *tensor, const void *data, int64_t bytes)
{
    constexpr const char *call = "yoke_tensor_copy_from_host";
    return guard(call, [&] {
        yoke_tensor &x = need(tensor, call, "tensor");
        need_list(static_cast<const char *>(data), bytes, call, "data");
        if (x.contiguous && !x.requires_grad())
            return copy_from_host(x, data, static_cast<uint64_t>(bytes), short_name(call));
        const Tensor dense = make_tensor(*x.device, x.dtype, x.shape(), short_name(call));
        copy_from_host(*dense, data, static_cast<uint64_t>(bytes), short_name(call));
        ops::copy_(x, *dense);
    });
}

yoke_status yoke_tensor_item_f64(yoke_tensor *tensor, double *value)
{
    constexpr const char *call = "yoke_tensor_item_f64";
    return guard(call, [&] {
        need(value, call, "value");
        *value = item<double>(need(tensor, call, "tensor"), YOKE_F64, kItem);
    });
}

yoke_status yoke_tensor_item_i64(yoke_tensor *tensor, int64_t *value)
{
    constexpr const char *call = "yoke_tensor_item_i64";
    return guard(call, [&] {
        need(value, call, "value");
        const yoke_tensor &x = need(tensor, call, "tensor");
        *value = is_floating(x.dtype) ? whole_number(item<double>(x, YOKE_F64, kItem), kItem)
                                      : item<int64_t>(x, YOKE_I64, kItem);
    });
}

yoke_status yoke_tensor_to(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype,
                           yoke_tensor **out)
{
    return to("yoke_tensor_to", tensor, device, dtype, false, out);
}

yoke_status yoke_tensor_to_v2(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype,
                              int32_t non_blocking, yoke_tensor **out)
{
    return to("yoke_tensor_to_v2", tensor, device, dtype, non_blocking != 0, out);
}

yoke_status yoke_tensor_to_(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype)
{
    constexpr const char *call = "yoke_tensor_to_";
    return guard(call, [&] {
        yoke_tensor &x = need(tensor, call, "tensor");
        if (dtype != YOKE_NONE) check_dtype(dtype, short_name(call));
        Device &where = device ? need(device, call, "device") : *x.device;
        move_leaf(x, where, dtype == YOKE_NONE ? x.dtype : dtype, short_name(call));
    });
}

yoke_status yoke_tensor_pin_memory(yoke_tensor *tensor, yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_pin_memory";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(pin_memory(need(tensor, call, "tensor"), short_name(call)));
    });
}

int32_t yoke_tensor_is_pinned(yoke_tensor *tensor)
{
    constexpr const char *call = "yoke_tensor_is_pinned";
    return guard_value(call, -1,
                       [&] { return pinned_block_of(need(tensor, call, "tensor")) ? 1 : 0; });
}

yoke_status yoke_tensor_index(yoke_tensor *tensor, const yoke_index *items, int64_t count,
                              yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_index";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        const yoke_tensor &x = need(tensor, call, "tensor");
        place = hand_out(index(x, Key(items, count, call), kIndexing));
    });
}

yoke_status yoke_tensor_index_put(yoke_tensor *tensor, const yoke_index *items, int64_t count,
                                  yoke_tensor *values)
{
    constexpr const char *call = "yoke_tensor_index_put";
    return guard(call, [&] {
        yoke_tensor &x = need(tensor, call, "tensor");
        const Key key(items, count, call);
        index_put(x, key, need(values, call, "values"), kIndexing);
    });
}

yoke_status yoke_tensor_index_fill(yoke_tensor *tensor, const yoke_index *items, int64_t count,
                                   const yoke_scalar *value)
{
    constexpr const char *call = "yoke_tensor_index_fill";
    return guard(call, [&] {
        yoke_tensor &x = need(tensor, call, "tensor");
        const Key key(items, count, call);
        const yoke_arg &number = need(value, call, "value");
        if (!is_scalar(number))
            fail(
                YOKE_E_TYPE,
                "%s: argument 'value' has kind %d; the kind of a scalar must be YOKE_ARG_BOOL, _INT or _FLOAT",
                short_name(call), number.kind);
        index_fill(x, key, number, kIndexing);
    });
}
