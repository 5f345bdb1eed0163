// Operands made by a kernel: a row-major copy, a script's number, a shape to which two operands broadcast. Host code.
#pragma once

#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

// Writes the strides, in elements, of a shape that lies row-major without gaps.
inline void row_major_strides(const yoke_operand &shape, int64_t (&strides)[YOKE_MAX_NDIM])
{
    int64_t step = 1;
    for (int axis = shape.ndim - 1; axis >= 0; axis--) {
        strides[axis] = step;
        step *= shape.shape[axis];
    }
}

// Returns an operand of a shape in row-major `data`, with a dtype of its own.
inline yoke_operand row_major(const yoke_operand &shape, void *data, yoke_dtype dtype,
                              int64_t (&strides)[YOKE_MAX_NDIM])
{
    yoke_operand operand = shape;
    row_major_strides(shape, strides);
    operand.data = data;
    operand.dtype = dtype;
    operand.strides = strides;
    operand.flags |= YOKE_OPERAND_CONTIGUOUS;
    return operand;
}

// Returns a value that broadcasts to any shape, as a script's number does. Host code reads the value at `data`, a
// device in `immediate`. Until either is set, the value is 0.
inline yoke_operand single_value(yoke_dtype dtype, const void *data = nullptr)
{
    yoke_operand operand = {};
    operand.data = const_cast<void *>(data);
    operand.numel = 1;
    operand.dtype = dtype;
    operand.flags = YOKE_OPERAND_READ | YOKE_OPERAND_SCALAR | YOKE_OPERAND_CONTIGUOUS;
    return operand;
}

// Returns the bits of a script's number as an element of T.
template <class T>
inline uint64_t bits_of(const yoke_arg &value)
{
    const T element = value_of<T>(value);
    uint64_t bits = 0;
    memcpy(&bits, &element, sizeof element);
    return bits;
}

// Shape to which two operands broadcast, as an operand without memory: all steps from `data` are 0.
struct BroadcastShape {
    yoke_operand operand{};
    int64_t shape[YOKE_MAX_NDIM], strides[YOKE_MAX_NDIM] = {};

    BroadcastShape(const yoke_operand &x, const yoke_operand &y, void *data)
    {
        const int ndim = x.ndim > y.ndim ? x.ndim : y.ndim;
        operand.numel = 1;
        for (int axis = 0; axis < ndim; axis++) {
            const int of_x = axis - (ndim - x.ndim), of_y = axis - (ndim - y.ndim);
            const int64_t a = of_x < 0 ? 1 : x.shape[of_x], b = of_y < 0 ? 1 : y.shape[of_y];
            operand.numel *= shape[axis] = a == 1 ? b : a;
        }
        operand.data = data;
        operand.shape = shape;
        operand.strides = strides;
        operand.ndim = ndim;
        operand.dtype = x.dtype;
    }
    BroadcastShape(const BroadcastShape &) = delete;
    BroadcastShape &operator=(const BroadcastShape &) = delete;
};

YOKE_KERNELS_END
