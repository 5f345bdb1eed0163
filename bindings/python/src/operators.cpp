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

// ---- Logic -----------------------------------------------------------------------------------------------

// Returns whether the value is a bool, or a tensor of bools. Else an error is set: Python's &, | and ^ of integers
// work bit by bit, for which there are no ops.
bool need_bools(PyObject *value, const char *sign, const char *function)
{
    if (is_bool(value)) return true;
    const char *given = Py_TYPE(value)->tp_name;
    if (is_tensor(value)) {
        yoke_tensor *handle = tensor_argument(value, {sign, "x"});
        if (!handle) return false;
        if (yoke_tensor_dtype(handle) == YOKE_BOOL) return true;
        given = yoke_dtype_name(yoke_tensor_dtype(handle));
    }
    raise_error(
        YOKE_E_TYPE, sign,
        "an operand is %.100s; both must be bool tensors or bools, because tensors have no bitwise operators: use yoke.%s, or compare first",
        given, function);
    return false;
}

PyObject *logical(OpPlace op, PyObject *x, PyObject *y, const char *sign, const char *function)
{
    const Operands operands(sign, x, y);
    if (!operands.ready()) return operands.instead();
    if (!need_bools(operands.x(), sign, function) || !need_bools(operands.y(), sign, function))
        return nullptr;
    return invoke_operator(op, operands.x(), operands.y());
}

PyObject *both(PyObject *x, PyObject *y)
{
    return logical(kOp_logical_and, x, y, "&", "logical_and");
}

PyObject *either(PyObject *x, PyObject *y)
{
    return logical(kOp_logical_or, x, y, "|", "logical_or");
}

PyObject *differ(PyObject *x, PyObject *y)
{
    return logical(kOp_logical_xor, x, y, "^", "logical_xor");
}

PyObject *negate(PyObject *x)
{
    return need_bools(x, "~", "logical_not") ? unary<kOp_logical_not>(x) : nullptr;
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
    {Py_nb_negative, slot(unary<kOp_neg>)},
    {Py_nb_positive, slot(positive)},
    {Py_nb_absolute, slot(unary<kOp_abs>)},
    {Py_nb_and, slot(both)},
    {Py_nb_or, slot(either)},
    {Py_nb_xor, slot(differ)},
    {Py_nb_invert, slot(negate)},
    {Py_tp_richcompare, slot(compare)},
    {Py_sq_contains, slot(contains)},
};

}  // namespace

void add_operators(TensorParts &parts)
{
    parts.add(operator_slots);
}

}  // namespace yoke_python
