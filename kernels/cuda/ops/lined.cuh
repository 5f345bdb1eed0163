// Operands over whose last axes rows go, in any strides.
#pragma once

#include "kernels/common/stand_in.h"
#include "kernels/cuda/ops/copy_strided.cuh"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

// Operand whose last axes form a line: the operand itself, or a row-major copy.
class Lined {
public:
    explicit Lined(const yoke_launch *launch) : launch_(launch), scratch_(launch) {}

    // Takes an operand, or a row-major copy if its axes from `axis` on are no line. The copy gets the data if
    // `reads`.
    yoke_status take(const yoke_operand &from, int axis, bool reads)
    {
        operand_ = from;
        if (!is_present(from) || is_line(from, axis)) return YOKE_OK;
        if (const yoke_status status =
                scratch_.reserve((uint64_t)(from.numel * dtype_size(from.dtype))))
            return status;
        operand_ = kernels::row_major(from, scratch_.as<void>(), from.dtype, strides_);
        return reads ? copy_operand(launch_, operand_, from) : (yoke_status)YOKE_OK;
    }
    // Copies the written data to `to`, if the operand is a copy of `to`.
    yoke_status give(const yoke_operand &to) const
    {
        return operand_.data == to.data ? (yoke_status)YOKE_OK
                                        : copy_operand(launch_, to, operand_);
    }
    const yoke_operand &operand() const { return operand_; }
    // Returns the operand, or `other` as a stand-in that is never read.
    const yoke_operand *or_else(const Lined &other) const
    {
        return is_present(operand_) ? &operand_ : &other.operand_;
    }

private:
    const yoke_launch *launch_;
    Scratch scratch_;
    yoke_operand operand_{};
    int64_t strides_[YOKE_MAX_NDIM];
};

YOKE_CUDA_END
