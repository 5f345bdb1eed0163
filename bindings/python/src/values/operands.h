// operands.h: two sides of an operator, with possible arrays of NumPy.
#pragma once

#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/tensor.h"

namespace yoke_python {

inline bool is_operand(PyObject *value)
{
    return is_tensor(value) || is_number(value);
}

// Both sides as tensors and numbers, for the lifetime of this object. A NumPy array beside a CPU tensor becomes a
// tensor of its dtype. Any other array is a TypeError with the right call.
class Operands {
public:
    Operands(const char *call, PyObject *x, PyObject *y);
    ~Operands();
    Operands(const Operands &) = delete;
    Operands &operator=(const Operands &) = delete;

    bool ready() const { return is_ready(x_) && is_ready(y_); }
    // Returns the operator's result if the sides are not ready: NotImplemented, or null with an error set.
    PyObject *instead() const { return new_reference_or_null(is_ready(x_) ? y_ : x_); }
    PyObject *x() const { return x_; }
    PyObject *y() const { return y_; }

private:
    static bool is_ready(PyObject *side) { return side && side != Py_NotImplemented; }
    static PyObject *new_reference_or_null(PyObject *side)
    {
        Py_XINCREF(side);
        return side;
    }

    PyObject *x_;
    PyObject *y_;
};

}  // namespace yoke_python
