// Common parts of matmul and linear: operands in memory that cuBLASLt supports.
#pragma once

#include "kernels/cuda/host/cublaslt.h"
#include "kernels/cuda/ops/copy_strided.cuh"

YOKE_CUDA_BEGIN

// A row-major tensor in scratch memory for the length of a launch.
class Dense {
public:
    explicit Dense(const yoke_launch *launch) : launch_(launch), scratch_(launch) {}

    // Reserves memory for a tensor of this shape and dtype.
    yoke_status reserve(const int64_t *shape, int ndim, yoke_dtype dtype)
    {
        operand_ = {};
        operand_.shape = shape;
        operand_.strides = strides_;
        operand_.ndim = ndim;
        operand_.dtype = dtype;
        operand_.flags = YOKE_OPERAND_READ | YOKE_OPERAND_WRITE | YOKE_OPERAND_CONTIGUOUS;
        operand_.numel = 1;
        for (int axis = ndim - 1; axis >= 0; axis--) {
            strides_[axis] = operand_.numel;
            operand_.numel *= shape[axis];
        }
        operand_.bytes = (uint64_t)(operand_.numel * dtype_size(dtype));
        const yoke_status status = scratch_.reserve(operand_.bytes);
        operand_.data = scratch_.as<void>();
        operand_.begin = operand_.data;
        return status;
    }

    // Reserves memory and fills it from `source`, which broadcasts to the shape.
    yoke_status copy(const yoke_operand &source, const int64_t *shape, int ndim)
    {
        const yoke_status status = reserve(shape, ndim, source.dtype);
        return status ? status : copy_operand(launch_, operand_, source);
    }

    const yoke_operand &operand() const { return operand_; }

private:
    const yoke_launch *launch_;
    Scratch scratch_;
    yoke_operand operand_;
    int64_t strides_[YOKE_MAX_NDIM];
};

YOKE_CUDA_END
