#include "core/tensor/dlpack.h"

#include "core/backend/traits.h"

#include <string_view>

namespace yoke {

namespace {

using namespace dlpack;

constexpr const char *kToCall = "yoke_tensor_to_dlpack";
constexpr const char *kFromCall = "yoke_tensor_from_dlpack";

// Both directions read this one table.
struct DtypeRow {
    yoke_dtype ours;
    uint8_t code;
    uint8_t bits;
};
constexpr DtypeRow kDtypes[] = {
#define YOKE_ROW(dtype, code, bits) {dtype, kDL##code, bits},
    YOKE_DTYPES_OF_DLPACK(YOKE_ROW)
#undef YOKE_ROW
};

// The field's names of the codes, for messages.
constexpr const char *kCodeNames[] = {
    "int",
    "uint",
    "float",
    "opaque handle",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
};
constexpr const char *kDeviceNames[] = {
    "?",      "cpu",    "cuda",    "cuda_host", "opencl",    "?",       "?",
    "vulkan", "metal",  "vpi",     "rocm",      "rocm_host", "ext_dev", "cuda_managed",
    "oneapi", "webgpu", "hexagon", "maia",      "trainium",
};

template <size_t N>
const char *name_in(const char *const (&names)[N], int64_t number)
{
    return number >= 0 && number < static_cast<int64_t>(N) ? names[number] : "?";
}

// ---- Export ----

DLDevice dl_device(const yoke_tensor &x)
{
    if (const int32_t type = traits_of(x.device->kind()).dlpack) return {type, x.device->index};
    fail(
        YOKE_E_UNSUPPORTED,
        "%s: DLPack does not support the device of the tensor %s; copy the tensor to the cpu first",
        kToCall, describe(x).c_str());
}

DLDataType dl_dtype(yoke_dtype dtype)
{
    for (const DtypeRow &row : kDtypes)
        if (row.ours == dtype) return {row.code, row.bits, 1};
    fail(YOKE_E_UNSUPPORTED,
         "%s: DLPack does not support the dtype %s; cast the tensor first, for example to float32",
         kToCall, name(dtype));
}

// Describes x for DLPack. Shape and strides are the arrays of x: the arrays never change, and the export holds x.
DLTensor dl_tensor(const yoke_tensor &x)
{
    DLTensor t{};
    t.data = x.numel ? x.data : nullptr;
    t.device = dl_device(x);
    t.ndim = x.ndim;
    t.dtype = dl_dtype(x.dtype);
    t.shape = const_cast<int64_t *>(x.shape_);
    t.strides = const_cast<int64_t *>(x.strides_);
    return t;
}

template <class Managed>
void give_back(Managed *managed)
{
    static_cast<yoke_tensor *>(managed->manager_ctx)->release();
    pool_free(managed, sizeof(Managed));
}

template <class Managed>
Managed *export_as(const yoke_tensor &exported)
{
    Tensor x = alias(exported);  // keeps its memory if a leaf moves
    const DLTensor described = dl_tensor(*x);
    auto *managed = static_cast<Managed *>(pool_alloc(sizeof(Managed)));
    *managed = Managed{};
    managed->dl_tensor = described;
    managed->manager_ctx = x.detach();
    managed->deleter = give_back<Managed>;
    return managed;
}

// ---- Import ----

yoke_dtype our_dtype(const DLDataType &dtype)
{
    if (dtype.lanes == 1)
        for (const DtypeRow &row : kDtypes)
            if (row.code == dtype.code && row.bits == dtype.bits) return row.ours;
    fail(
        YOKE_E_TYPE,
        "%s: the data has DLPack type %s (code %u) of %u bits and %u lanes, which is not a dtype of Yoke; convert the data before the exchange, for example to float32",
        kFromCall, name_in(kCodeNames, dtype.code), dtype.code, dtype.bits, dtype.lanes);
}

Device &our_device(const DLDevice &device)
{
    switch (device.device_type) {
        case kDLCPU:
        case kDLCUDAHost:
            return *devices_of("cpu").front();
        case kDLCUDA: {
            const std::vector<Device *> &devices = devices_of(find_dlpack_kind(kDLCUDA)->kind);
            for (Device *candidate : devices)
                if (candidate->index == device.device_id) return *candidate;
            fail(
                YOKE_E_UNAVAILABLE,
                "%s: the data is on cuda:%d, but this process has %zu cuda devices; copy the data to one of these devices or to the cpu first",
                kFromCall, device.device_id, devices.size());
        }
        default:
            fail(
                YOKE_E_UNSUPPORTED,
                "%s: the data is on a device of DLPack type %d (%s); Yoke takes cpu, cuda_host and cuda: copy the data to the cpu first",
                kFromCall, device.device_type, name_in(kDeviceNames, device.device_type));
    }
}

IntList checked_shape(const DLTensor &t)
{
    if (t.ndim < 0 || t.ndim > YOKE_MAX_NDIM)
        fail(YOKE_E_VALUE, "%s: the data has %d axes; a tensor has 0 to %d", kFromCall, t.ndim,
             YOKE_MAX_NDIM);
    if (t.ndim && !t.shape)
        fail(
            YOKE_E_VALUE,
            "%s: the data has %d axes, but its field 'shape' is NULL; the producer must give the shape",
            kFromCall, t.ndim);
    return {t.shape, static_cast<size_t>(t.ndim)};
}

// Returns the address of the first element; nullptr for data without elements, since such an address means nothing.
// Raises YOKE_E_VALUE if `byte_offset` leads beyond memory.
void *first_element(const DLTensor &t, int64_t numel)
{
    if (numel == 0) return nullptr;
    uintptr_t address = reinterpret_cast<uintptr_t>(t.data);
    if (address && __builtin_add_overflow(address, t.byte_offset, &address))
        fail(
            YOKE_E_VALUE,
            "%s: the field 'byte_offset' of the data is %llu, beyond the end of memory; the producer must give a valid offset",
            kFromCall, static_cast<unsigned long long>(t.byte_offset));
    return reinterpret_cast<void *>(address);
}

template <class Managed>
void run_deleter(void *user)
{
    auto *managed = static_cast<Managed *>(user);
    if (managed->deleter) managed->deleter(managed);
}

// Returns a view of the same storage if the struct was exported here and has not changed, and ends the export; else
// returns null. So the tensor's casts and saved tensors notice writes.
template <class Managed>
Tensor our_own(Managed *managed)
{
    if (managed->deleter != give_back<Managed>) return {};
    const auto &x = *static_cast<const yoke_tensor *>(managed->manager_ctx);
    const DLTensor &t = managed->dl_tensor;
    const DLTensor own = dl_tensor(x);
    const bool same = t.data == own.data && t.byte_offset == own.byte_offset &&
                      t.ndim == own.ndim && t.shape == own.shape && t.strides == own.strides &&
                      t.dtype.code == own.dtype.code && t.dtype.bits == own.dtype.bits &&
                      t.dtype.lanes == own.dtype.lanes;
    if (!same) return {};
    Tensor again = alias(x);
    give_back(managed);
    return again;
}

template <class Managed>
Tensor import_as(Managed *managed)
{
    if (Tensor own = our_own(managed); own.get()) return own;
    const DLTensor &t = managed->dl_tensor;
    const IntList shape = checked_shape(t);
    const yoke_dtype dtype = our_dtype(t.dtype);
    void *data = first_element(t, checked_numel(shape, kFromCall));
    return from_memory(data, shape, t.strides, dtype, our_device(t.device), run_deleter<Managed>,
                       managed, kFromCall);
}

// Raises YOKE_E_UNSUPPORTED for another major version or read-only memory. Reads the version first: only the fields
// before `flags` keep their place across major versions.
void check_header(const DLManagedTensorVersioned &managed)
{
    if (managed.version.major != kMajorVersion)
        fail(
            YOKE_E_UNSUPPORTED,
            "%s: the data has DLPack version %u.%u, but Yoke reads %u.x; ask the producer for max_version (%u, %u)",
            kFromCall, managed.version.major, managed.version.minor, kMajorVersion, kMajorVersion,
            kMinorVersion);
    if (managed.flags & kFlagReadOnly)
        fail(
            YOKE_E_UNSUPPORTED,
            "%s: the data is read-only, but all tensors of Yoke are writable; pass a copy (in NumPy: x.copy())",
            kFromCall);
}

}  // namespace

void *to_dlpack(const yoke_tensor &x, bool versioned)
{
    if (x.requires_grad())
        fail(
            YOKE_E_STATE,
            "%s: the tensor %s requires grad, but other libraries do not record its gradient; call detach() first",
            kToCall, describe(x).c_str());
    if (!versioned) return export_as<DLManagedTensor>(x);
    auto *managed = export_as<DLManagedTensorVersioned>(x);
    managed->version = {kMajorVersion, kMinorVersion};
    return managed;
}

void drop_dlpack(void *managed, bool versioned) noexcept
{
    if (versioned) return run_deleter<DLManagedTensorVersioned>(managed);
    run_deleter<DLManagedTensor>(managed);
}

Tensor from_dlpack(void *managed, bool versioned)
{
    if (!managed)
        fail(YOKE_E_VALUE,
             "%s: argument 'managed' is NULL; give the struct that the producer exported",
             kFromCall);
    if (!versioned) return import_as(static_cast<DLManagedTensor *>(managed));
    check_header(*static_cast<DLManagedTensorVersioned *>(managed));
    return import_as(static_cast<DLManagedTensorVersioned *>(managed));
}

}  // namespace yoke
