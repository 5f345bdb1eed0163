// operators.cpp: meaning of +, ==, &, in and similar operators between tensors and numbers.
//
// An operator is an op. A NumPy array is a tensor of its dtype (values/operands.h). If a side is not a tensor, number
// or array, the other class is asked, by Python's rules; == and != then fall back to identity.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/invoke.h"
#include "bindings/python/src/values/operands.h"

namespace yoke_python {

namespace {

template <OpPlace kOp>
PyObject *binary(PyObject *x, PyObject *y)
{
    return invoke_operator(kOp, x, y);
}

template <OpPlace kOp>
PyObject *unary(PyObject *x)
{
    return invoke(kOp, x, nullptr, 0, nullptr);
}

// Computes x += y, for a number, a tensor or an array y. Any other class of y may define the addition itself.
template <OpPlace kOp>
PyObject *in_place(PyObject *x, PyObject *y)
{
    if (is_operand(y)) return invoke(kOp, x, &y, 1, nullptr);
    const Operands operands(op_name(kOp), x, y);
    PyObject *const value = operands.y();
    return operands.ready() ? invoke(kOp, x, &value, 1, nullptr) : operands.instead();
}

PyObject *positive(PyObject *x)
{
    return new_reference(x);
}

// Refuses pow(x, y, modulus) of Python's integers, which has no counterpart: returns true with TypeError set. Returns
// false without a modulus.
bool refuse_modulus(PyObject *modulus)
{
    if (modulus == Py_None) return false;
    raise_error(YOKE_E_TYPE, "pow", "a tensor does not support a modulus");
    return true;
}

PyObject *power(PyObject *x, PyObject *y, PyObject *modulus)
{
    return refuse_modulus(modulus) ? nullptr : invoke_operator(kOp_pow, x, y);
}

PyObject *power_in_place(PyObject *x, PyObject *y, PyObject *modulus)
{
    return refuse_modulus(modulus) ? nullptr : in_place<kOp_pow_>(x, y);
}

// ---- Comparisons -----------------------------------------------------------------------------------------

PyObject *compare(PyObject *x, PyObject *y, int operation)
{
    switch (operation) {
        case Py_LT:
            return invoke_operator(kOp_lt, x, y);
        case Py_LE:
            return invoke_operator(kOp_le, x, y);
        case Py_EQ:
            return invoke_operator(kOp_eq, x, y);
        case Py_NE:
            return invoke_operator(kOp_ne, x, y);
        case Py_GT:
            return invoke_operator(kOp_gt, x, y);
        default:
            return invoke_operator(kOp_ge, x, y);
    }
}

// Returns the result of `y in x`: 1 if any element equals y, else 0; -1 with an error set.
int contains(PyObject *x, PyObject *y)
{
    PyObject *equal = invoke_operator(kOp_eq, x, y);
    if (equal == Py_NotImplemented) {
        Py_DECREF(equal);
        raise_type({"Tensor.__contains__", "value"}, "a number, a tensor or an array", y);
        return -1;
    }
    PyObject *any = equal ? invoke(kOp_any, equal, nullptr, 0, nullptr) : nullptr;
    const int found = any ? PyObject_IsTrue(any) : -1;
    Py_XDECREF(any);
    Py_XDECREF(equal);
    return found;
}

const PyType_Slot operator_slots[] = {
    {Py_nb_add, slot(binary<kOp_add>)},
    {Py_nb_subtract, slot(binary<kOp_sub>)},
    {Py_nb_multiply, slot(binary<kOp_mul>)},
    {Py_nb_true_divide, slot(binary<kOp_div>)},
    {Py_nb_matrix_multiply, slot(binary<kOp_matmul>)},
    {Py_nb_power, slot(power)},
    {Py_nb_inplace_add, slot(in_place<kOp_add_>)},
    {Py_nb_inplace_subtract, slot(in_place<kOp_sub_>)},
    {Py_nb_inplace_multiply, slot(in_place<kOp_mul_>)},
    {Py_nb_inplace_true_divide, slot(in_place<kOp_div_>)},
    {Py_nb_inplace_power, slot(power_in_place)},
    {Py_nb_inplace_floor_divide, slot(in_place<kOp_floor_divide_>)},
    {Py_nb_inplace_remainder, slot(in_place<kOp_remainder_>)},
    {Py_nb_inplace_and, slot(in_place<kOp_bitwise_and_>)},
    {Py_nb_inplace_or, slot(in_place<kOp_bitwise_or_>)},
    {Py_nb_inplace_xor, slot(in_place<kOp_bitwise_xor_>)},
    {Py_nb_inplace_lshift, slot(in_place<kOp_bitwise_left_shift_>)},
    {Py_nb_inplace_rshift, slot(in_place<kOp_bitwise_right_shift_>)},
    {Py_nb_negative, slot(unary<kOp_neg>)},
    {Py_nb_positive, slot(positive)},
    {Py_nb_absolute, slot(unary<kOp_abs>)},
    {Py_nb_floor_divide, slot(binary<kOp_floor_divide>)},
    {Py_nb_remainder, slot(binary<kOp_remainder>)},
    {Py_nb_and, slot(binary<kOp_bitwise_and>)},
    {Py_nb_or, slot(binary<kOp_bitwise_or>)},
    {Py_nb_xor, slot(binary<kOp_bitwise_xor>)},
    {Py_nb_lshift, slot(binary<kOp_bitwise_left_shift>)},
    {Py_nb_rshift, slot(binary<kOp_bitwise_right_shift>)},
    {Py_nb_invert, slot(unary<kOp_bitwise_not>)},
    {Py_tp_richcompare, slot(compare)},
    {Py_sq_contains, slot(contains)},
};

}  // namespace

void add_operators(TensorParts &parts)
{
    parts.add(operator_slots);
}

}  // namespace yoke_python
