// Casts of many tensors in one launch.
#include "kernels/cuda/ops/multi_tensor.cuh"

YOKE_CUDA_BEGIN

constexpr int kCastBytes = 32;  // bytes of each operand for a thread at once, in the computing type

// Operands: the cast, its source.
template <class C>
struct CastTo : OpOn<C, 2, 2, 1, kCastBytes> {
    __device__ void operator()(Nothing, C (&x)[2], Nothing) const { x[0] = x[1]; }
};

YOKE_KERNEL(_cast_all)
{
    const int64_t count = kernels::count_written(launch);
    const yoke_operand *casts = launch->operands, *from = casts + count;
    return over_list<CastTo>(
        launch, count, chunk_of(total_numel(casts, count)),
        [&](int64_t i) -> Item<2> {
            return {{casts + i, from + i}};
        },
        [&]<class C>() { return CastTo<C>(); }, Kind<2>{{YOKE_BF16, YOKE_F32}},
        Kind<2>{{YOKE_F16, YOKE_F32}});
}

YOKE_CUDA_END
