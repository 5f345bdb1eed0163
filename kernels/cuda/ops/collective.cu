// Conversions of elements to NCCL's forms, and back: collective.h.
#include "kernels/cuda/ops/collective.h"

#include "kernels/common/extreme_key.h"
#include "kernels/common/numeric.h"
#include "kernels/cuda/ops/kernel.cuh"

YOKE_CUDA_BEGIN

// ---- keys -----------------------------------------------------------------------------------------------------------

template <class K, class Wire>
__global__ void write_keys(const K *in, Wire *out, int64_t n, kernels::KeyFormat<K> format)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = kernels::extreme_key(in[i], format);
}

template <class K, class Wire>
__global__ void read_keys(const Wire *in, K *out, int64_t n, kernels::KeyFormat<K> format)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = kernels::bits_of_extreme_key((K)in[i], format);
}

// Arguments common to the kernels of a call.
struct Conversion {
    const yoke_launch *launch;
    bool smallest, is_back;
    const void *in;
    void *out;
    int64_t count;

    Grid grid() const
    {
        const int threads = block_size(kThreads);
        return {blocks_for(launch, count, threads), threads};
    }
};

template <class K, class Wire = K>
static yoke_status convert_keys(const Conversion &call, uint64_t most, uint64_t quiet)
{
    const kernels::KeyFormat<K> format{(K)most, (K)quiet, (K)(call.smallest ? 0 : ~(K)0)};
    if (call.is_back)
        return start(call.launch, read_keys<K, Wire>, call.grid(),
                     static_cast<const Wire *>(call.in), static_cast<K *>(call.out), call.count,
                     format);
    return start(call.launch, write_keys<K, Wire>, call.grid(), static_cast<const K *>(call.in),
                 static_cast<Wire *>(call.out), call.count, format);
}

static yoke_status keys_of(const Conversion &call, yoke_dtype dtype)
{
    switch (dtype) {
        case YOKE_F64:
            return convert_keys<uint64_t>(call, 0x7ff0000000000000u, 0x7ff8000000000000u);
        case YOKE_F32:
            return convert_keys<uint32_t>(call, 0x7f800000u, 0x7fc00000u);
        case YOKE_F16:
            return convert_keys<uint16_t, uint32_t>(call, 0x7c00u, 0x7e00u);
        case YOKE_BF16:
            return convert_keys<uint16_t, uint32_t>(call, 0x7f80u, 0x7fc0u);
        case YOKE_F8_E4M3:
            return convert_keys<uint8_t>(call, 0x7eu, 0x7fu);
        case YOKE_F8_E5M2:
            return convert_keys<uint8_t>(call, 0x7cu, 0x7eu);
        default:
            return bad_dtype(call.launch, "t", dtype);
    }
}

// ---- f32 ------------------------------------------------------------------------------------------------------------

__global__ void write_f32(const uint16_t *in, float *out, int64_t n, bool is_bf16)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = is_bf16 ? kernels::bf16_to_f32(kernels::bf16{in[i]})
                         : kernels::f16_to_f32(kernels::f16{in[i]});
}

__global__ void read_f32(const float *in, uint16_t *out, int64_t n, bool is_bf16)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x)
        out[i] = is_bf16 ? kernels::f32_to_bf16(in[i]).bits : kernels::f32_to_f16(in[i]).bits;
}

static yoke_status widths_of(const Conversion &call, yoke_dtype dtype)
{
    const bool is_bf16 = dtype == YOKE_BF16;
    if (!is_bf16 && dtype != YOKE_F16) return bad_dtype(call.launch, "t", dtype);
    if (call.is_back)
        return start(call.launch, read_f32, call.grid(), static_cast<const float *>(call.in),
                     static_cast<uint16_t *>(call.out), call.count, is_bf16);
    return start(call.launch, write_f32, call.grid(), static_cast<const uint16_t *>(call.in),
                 static_cast<float *>(call.out), call.count, is_bf16);
}

static yoke_status convert_form(Form form, yoke_dtype dtype, const Conversion &call)
{
    return form == Form::kKeys ? keys_of(call, dtype) : widths_of(call, dtype);
}

YOKE_CUDA_END

namespace yoke::cuda {

yoke_status to_form(const yoke_launch *launch, Form form, yoke_dtype dtype, bool smallest,
                    const void *in, void *out, int64_t count)
{
    return convert_form(form, dtype, {launch, smallest, false, in, out, count});
}

yoke_status from_form(const yoke_launch *launch, Form form, yoke_dtype dtype, bool smallest,
                      const void *in, void *out, int64_t count)
{
    return convert_form(form, dtype, {launch, smallest, true, in, out, count});
}

}  // namespace yoke::cuda
