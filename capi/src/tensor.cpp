#include "yoke/tensor.h"
#include "core/base/text.h"

#include "capi/src/guard.h"
#include "core/backend/traits.h"
#include "core/base/random.h"
#include "core/tensor/dlpack.h"
#include "core/tensor/tensor.h"

#include <algorithm>

using namespace yoke;
using namespace yoke::capi;

namespace {

template <class T, class Read>
T read(const char *call, yoke_tensor *tensor, T missing, Read &&get)
{
    return guard_value(call, missing, [&]() -> T { return get(need(tensor, call, "tensor")); });
}

}  // namespace

yoke_tensor *yoke_tensor_retain(yoke_tensor *tensor)
{
    return retain_handle(tensor, "yoke_tensor_retain");
}

void yoke_tensor_release(yoke_tensor *tensor)
{
    release_handle(tensor, "yoke_tensor_release");
}

yoke_status yoke_tensor_from_memory(void *data, const int64_t *shape, int64_t ndim,
                                    const int64_t *strides, yoke_dtype dtype, yoke_device *device,
                                    yoke_drop_fn drop, void *user, yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_from_memory";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(from_memory(data, need_shape(shape, ndim, call), strides, dtype,
                                     device_or_current(device), drop, user, short_name(call)));
    });
}

yoke_status yoke_tensor_from_data(const void *data, int64_t bytes, const int64_t *shape,
                                  int64_t ndim, yoke_dtype dtype, yoke_device *device,
                                  yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_from_data";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        need_list(static_cast<const char *>(data), bytes, call, "data");
        check_dtype(dtype, short_name(call));
        // The size is compared before memory is taken for it.
        Tensor made = make_layout(device_or_current(device), dtype, need_shape(shape, ndim, call),
                                  nullptr, short_name(call));
        if (static_cast<uint64_t>(bytes) != made->nbytes())
            fail(YOKE_E_VALUE,
                 "%s: argument 'bytes' is %lld; it must be the size of the tensor %s, %llu bytes",
                 short_name(call), static_cast<long long>(bytes), describe(*made).c_str(),
                 static_cast<unsigned long long>(made->nbytes()));
        allocate_memory(*made);
        copy_from_host(*made, data, made->nbytes(), short_name(call));
        place = hand_out(std::move(made));
    });
}

int64_t yoke_tensor_ndim(yoke_tensor *tensor)
{
    return read("yoke_tensor_ndim", tensor, int64_t{-1}, [](yoke_tensor &x) { return x.ndim; });
}

const int64_t *yoke_tensor_shape(yoke_tensor *tensor)
{
    return read<const int64_t *>("yoke_tensor_shape", tensor, nullptr,
                                 [](yoke_tensor &x) { return x.shape_; });
}

const int64_t *yoke_tensor_strides(yoke_tensor *tensor)
{
    return read<const int64_t *>("yoke_tensor_strides", tensor, nullptr,
                                 [](yoke_tensor &x) { return x.strides_; });
}

int64_t yoke_tensor_numel(yoke_tensor *tensor)
{
    return read("yoke_tensor_numel", tensor, int64_t{-1}, [](yoke_tensor &x) { return x.numel; });
}

int64_t yoke_tensor_nbytes(yoke_tensor *tensor)
{
    return read("yoke_tensor_nbytes", tensor, int64_t{-1},
                [](yoke_tensor &x) { return static_cast<int64_t>(x.nbytes()); });
}

int64_t yoke_tensor_itemsize(yoke_tensor *tensor)
{
    return read("yoke_tensor_itemsize", tensor, int64_t{-1},
                [](yoke_tensor &x) { return static_cast<int64_t>(item_size(x.dtype)); });
}

yoke_dtype yoke_tensor_dtype(yoke_tensor *tensor)
{
    return read<yoke_dtype>("yoke_tensor_dtype", tensor, YOKE_NONE,
                            [](yoke_tensor &x) { return x.dtype; });
}

yoke_device *yoke_tensor_device(yoke_tensor *tensor)
{
    return read<yoke_device *>("yoke_tensor_device", tensor, nullptr,
                               [](yoke_tensor &x) { return x.device; });
}

int32_t yoke_tensor_is_contiguous(yoke_tensor *tensor)
{
    return read("yoke_tensor_is_contiguous", tensor, -1,
                [](yoke_tensor &x) { return x.contiguous ? 1 : 0; });
}

uint64_t yoke_tensor_storage_id(yoke_tensor *tensor)
{
    return read("yoke_tensor_storage_id", tensor, uint64_t{0},
                [](yoke_tensor &x) { return reinterpret_cast<uint64_t>(x.storage.get()); });
}

int64_t yoke_tensor_storage_nbytes(yoke_tensor *tensor)
{
    return read("yoke_tensor_storage_nbytes", tensor, int64_t{-1},
                [](yoke_tensor &x) { return static_cast<int64_t>(x.storage->bytes); });
}

int64_t yoke_tensor_storage_offset(yoke_tensor *tensor)
{
    return read("yoke_tensor_storage_offset", tensor, int64_t{-1}, [](yoke_tensor &x) -> int64_t {
        return x.data ? x.data - static_cast<char *>(x.storage->data) : 0;
    });
}

yoke_status yoke_tensor_view_storage(yoke_tensor *tensor, yoke_dtype dtype, const int64_t *shape,
                                     const int64_t *strides, int64_t ndim, int64_t offset,
                                     yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_view_storage";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(view_storage(need(tensor, call, "tensor"), dtype,
                                      need_shape(shape, ndim, call), strides, offset,
                                      short_name(call)));
    });
}

int32_t yoke_shares_memory(yoke_tensor *a, yoke_tensor *b)
{
    constexpr const char *call = "yoke_shares_memory";
    return guard_value(
        call, -1, [&] { return shares_memory(need(a, call, "a"), need(b, call, "b")) ? 1 : 0; });
}

void *yoke_tensor_data(yoke_tensor *tensor)
{
    return read<void *>("yoke_tensor_data", tensor, nullptr, [](yoke_tensor &x) {
        x.storage->note_exposed();
        return x.numel ? x.data : nullptr;
    });
}

yoke_status yoke_tensor_to_dlpack(yoke_tensor *tensor, int32_t versioned, void *stream, void **out)
{
    constexpr const char *call = "yoke_tensor_to_dlpack";
    return guard(call, [&] {
        void *&place = need_out(out, call);
        yoke_tensor &x = need(tensor, call, "tensor");
        Device &device = *x.device;
        check_usable(device);
        x.storage->note_exposed();
        const auto unordered = reinterpret_cast<void *>(intptr_t{-1});
        void *managed = to_dlpack(x, versioned != 0);
        if (stream != unordered && stream != current_native(device)) {
            try {
                const Ref<Fence> ready = fence_behind(device, memory_lane(device));
                if (ready.present()) wait_fence_native(device, stream, *ready);
            } catch (...) {
                drop_dlpack(managed, versioned != 0);
                throw;
            }
        }
        place = managed;
    });
}

yoke_status yoke_tensor_from_dlpack(void *managed, int32_t versioned, yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_from_dlpack";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        if (!managed) fail_null(call, "managed");
        place = hand_out(from_dlpack(managed, versioned != 0));
    });
}

const char *yoke_dtype_name(yoke_dtype dtype)
{
    return is_dtype(dtype) ? name(dtype) : nullptr;
}

int64_t yoke_dtype_size(yoke_dtype dtype)
{
    return static_cast<int64_t>(item_size(dtype));
}

namespace {

// Returns whether a device's spec begins so: scripts for other libraries name a device where a dtype is wanted here.
bool names_device(std::string_view text)
{
    using namespace std::string_view_literals;
    const std::string_view kind = text.substr(0, text.find(':'));
    const auto others = {"auto"sv, "sim"sv, "mps"sv, "xpu"sv, "hip"sv};
    return kind_called(kind) || (!kind.empty() && traits_of(kind).kind == kind) ||
           std::find(others.begin(), others.end(), kind) != others.end();
}

}  // namespace

yoke_status yoke_dtype_from_name(const char *name, yoke_dtype *dtype)
{
    constexpr const char *call = "yoke_dtype_from_name";
    return guard(call, [&] {
        need(name, call, "name");
        const yoke_dtype found = dtype_from_name(name);
        if (found == YOKE_NONE) {
            std::string known;
            std::vector<const char *> names;
            for (yoke_dtype d = YOKE_NONE + 1; d < YOKE_DTYPE_COUNT; ++d) {
                names.push_back(yoke::name(d));
                add_part(known, names.back());
            }
            const bool is_device = names_device(name);
            const char *meant = is_device ? nullptr : nearest_word(name, names);
            fail(YOKE_E_VALUE, "%s: argument 'name' is '%s'%s; it must be %s%s", short_name(call),
                 name, is_device ? ", which names a device" : "", known.c_str(),
                 meant ? format("; did you mean '%s'?", meant).c_str() : "");
        }
        need(dtype, call, "dtype") = found;
    });
}

yoke_status yoke_manual_seed(uint64_t seed)
{
    return guard("yoke_manual_seed", [&] { manual_seed(seed); });
}

yoke_status yoke_get_rng_state(uint64_t *seed, uint64_t *offset)
{
    constexpr const char *call = "yoke_get_rng_state";
    return guard(call, [&] {
        uint64_t &seed_out = need(seed, call, "seed");
        uint64_t &offset_out = need(offset, call, "offset");
        const RandomState at = random_state();
        seed_out = at.seed;
        offset_out = at.offset;
    });
}

yoke_status yoke_set_rng_state(uint64_t seed, uint64_t offset)
{
    return guard("yoke_set_rng_state", [&] { set_random_state({seed, offset}); });
}
