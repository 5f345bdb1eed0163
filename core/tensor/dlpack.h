// dlpack.h: tensors to and from other array libraries without a copy, through the DLPack 1.x ABI.
//
// The structs are Yoke's own declaration of the public ABI (github.com/dmlc/dlpack, versions 1.0 and later of major
// 1, and the unversioned struct before). The names follow the public header; the assertions below hold the layout.
//
// Ownership: a managed struct has a single owner, who ends the struct by calling its deleter once. to_dlpack gives
// the ownership to the caller. from_dlpack takes the ownership on success; if it raises, the caller keeps the
// ownership.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke::dlpack {

// DLDeviceType
inline constexpr int32_t kDLCPU = 1;
inline constexpr int32_t kDLCUDA = 2;
inline constexpr int32_t kDLCUDAHost = 3;  // pinned host memory

struct DLDevice {
    int32_t device_type;
    int32_t device_id;
};

// DLDataTypeCode
inline constexpr uint8_t kDLInt = 0;
inline constexpr uint8_t kDLUInt = 1;
inline constexpr uint8_t kDLFloat = 2;
inline constexpr uint8_t kDLBfloat = 4;
inline constexpr uint8_t kDLBool = 6;
inline constexpr uint8_t kDLFloat8_e3m4 = 7;  // from version 1.1 on
inline constexpr uint8_t kDLFloat8_e4m3 = 8;
inline constexpr uint8_t kDLFloat8_e4m3b11fnuz = 9;
inline constexpr uint8_t kDLFloat8_e4m3fn = 10;
inline constexpr uint8_t kDLFloat8_e4m3fnuz = 11;
inline constexpr uint8_t kDLFloat8_e5m2 = 12;
inline constexpr uint8_t kDLFloat8_e5m2fnuz = 13;
inline constexpr uint8_t kDLFloat8_e8m0fnu = 14;

struct DLDataType {
    uint8_t code;
    uint8_t bits;    // per lane
    uint16_t lanes;  // 1, except for vector types
};

struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;  // in elements; nullptr: row-major
    uint64_t byte_offset;
};

// "dltensor" capsules, before version 1.
struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(DLManagedTensor *self);  // nullptr: nothing to release
};

struct DLPackVersion {
    uint32_t major;  // another major: another layout after `deleter`
    uint32_t minor;
};

inline constexpr uint32_t kMajorVersion = 1;
inline constexpr uint32_t kMinorVersion = 0;  // earliest version with all written fields

inline constexpr uint64_t kFlagReadOnly = 1u << 0;
inline constexpr uint64_t kFlagIsCopied = 1u << 1;

// "dltensor_versioned" capsules.
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
};

static_assert(sizeof(void *) == 8, "the offsets below are those of 64-bit platforms");
static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4 && sizeof(DLTensor) == 48);
static_assert(offsetof(DLTensor, device) == 8 && offsetof(DLTensor, ndim) == 16 &&
              offsetof(DLTensor, dtype) == 20);
static_assert(offsetof(DLTensor, shape) == 24 && offsetof(DLTensor, strides) == 32);
static_assert(offsetof(DLTensor, byte_offset) == 40);
static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, manager_ctx) == 48);
static_assert(offsetof(DLManagedTensor, deleter) == 56);
static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
              offsetof(DLManagedTensorVersioned, manager_ctx) == 8);
static_assert(offsetof(DLManagedTensorVersioned, deleter) == 16 &&
              offsetof(DLManagedTensorVersioned, flags) == 24);
static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);

}  // namespace yoke::dlpack

namespace yoke {

// Exports x: a new DLManagedTensorVersioned, or a DLManagedTensor if not `versioned`, over x's own memory. The struct
// holds a reference on x until its deleter is called, on any thread. The call does not wait for running work on x:
// the caller orders the consumer's stream after this work. Autograd's version counters do not see the consumer's
// writes, so a tensor with requires_grad raises YOKE_E_STATE. A device without a name in DLPack raises
// YOKE_E_UNSUPPORTED.
void *to_dlpack(const yoke_tensor &x, bool versioned);

// Ends an export without a consumer, by calling its deleter.
void drop_dlpack(void *managed, bool versioned) noexcept;

// Imports a DLManagedTensorVersioned, or a DLManagedTensor if not `versioned`: a tensor over the producer's memory.
// On success Yoke owns the struct, and the deleter runs once, on the thread that drops the last tensor over this
// memory. A struct that Yoke exported gives a view of the same storage, and ends at once. If the call raises, the
// caller still owns the struct, and the deleter was not called.
//
// Raises YOKE_E_TYPE for a dtype unknown to Yoke. Raises YOKE_E_UNSUPPORTED for another major version, a foreign kind
// of device, or read-only memory (Yoke's tensors are always writable, so the producer has to copy). Raises
// YOKE_E_UNAVAILABLE for a device not usable here, YOKE_E_VALUE for impossible sizes, strides, offsets or addresses.
Tensor from_dlpack(void *managed, bool versioned);

}  // namespace yoke
