#include "bindings/python/src/values/invoke.h"

#include "bindings/python/src/runtime/call.h"
#include "bindings/python/src/runtime/log.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/arguments.h"
#include "bindings/python/src/values/numbers.h"
#include "bindings/python/src/values/operands.h"

#include "yoke/autograd.h"

#include <cstring>
#include <new>
#include <string>
#include <vector>

namespace yoke_python {
namespace {

PyTypeObject *pair_type;  // results such as sort's

// Ends a call after the C function, whatever the path: raises its error, passes on log lines, returns the result or
// null.
PyObject *finish_one(const OpSpec &spec, yoke_status status, yoke_tensor *out)
{
    if (status) [[unlikely]]
        return raise_last_error(spec.name);
    PyObject *result = wrap_tensor(out);
    if (log_waits() && !drain_log()) [[unlikely]]
        Py_CLEAR(result);
    return result;
}

// Reads an argument without running Python code: a live tensor, or a number of exactly Python's types. Returns false,
// with no error set, for any other argument.
bool read_simple(PyObject *object, bool scalars, yoke_arg *arg)
{
    arg->count = 0;
    if (is_tensor(object)) {
        arg->kind = YOKE_ARG_TENSOR;
        arg->v.tensor = handle_of(object);
        return arg->v.tensor != nullptr;
    }
    int overflow = 0;
    if (scalars && PyFloat_CheckExact(object)) {
        arg->kind = YOKE_ARG_FLOAT;
        arg->v.f = PyFloat_AS_DOUBLE(object);
    } else if (scalars && PyLong_CheckExact(object)) {
        arg->kind = YOKE_ARG_INT;
        arg->v.i = PyLong_AsLongLongAndOverflow(object, &overflow);
    } else {
        return false;
    }
    return !overflow;
}

// Calls an op with small tensors and numbers, without a hold on them, with the GIL. Returns null without an error set
// for any other call.
template <int kCount>
PyObject *invoke_small(const OpSpec &spec, PyObject *x, PyObject *y)
{
    yoke_arg args[2];
    PyObject *const objects[2] = {x, y};
    int64_t bytes = 0;
    for (int i = 0; i < kCount; i++) {
        if (!read_simple(objects[i], spec.takes_scalar, &args[i])) return nullptr;
        if (args[i].kind == YOKE_ARG_TENSOR) bytes += yoke_tensor_nbytes(args[i].v.tensor);
    }
    if (bytes > kGilBytes) return nullptr;
    yoke_tensor *out = nullptr;
    const yoke_status status = yoke_op_invoke(spec.id, args, kCount, &out, 1);
    // A collection may run finalizers that close x or y. So only the general path, which holds x and y, collects and
    // tries again.
    if (status == YOKE_E_OOM) [[unlikely]]
        return nullptr;
    // If an op changes nothing, C returns the argument; Python then returns the same object.
    if (status == YOKE_OK && args[0].kind == YOKE_ARG_TENSOR && out == args[0].v.tensor) {
        yoke_tensor_release(out);
        return new_reference(x);
    }
    return finish_one(spec, status, out);
}

// Returns a tuple of tensors; it owns the handles from now on, even after a failure.
PyObject *tuple_of(yoke_tensor **outs, int64_t count)
{
    PyObject *tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
    for (int64_t i = 0; i < count; i++) {
        PyObject *item = wrap_tensor(outs[i]);
        if (tuple && item) {
            PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), item);
        } else {
            Py_CLEAR(tuple);
            Py_XDECREF(item);
        }
    }
    return tuple;
}

// Returns the named tuple of values and indices; takes the reference to the plain tuple.
PyObject *pair_of(PyObject *tuple)
{
    PyObject *pair = PyStructSequence_New(pair_type);
    for (Py_ssize_t i = 0; pair && i < 2; i++)
        PyStructSequence_SetItem(pair, i, new_reference(PyTuple_GET_ITEM(tuple, i)));
    Py_DECREF(tuple);
    return pair;
}

// Returns the only element of a result as a bool; takes over the handle.
PyObject *truth_of(yoke_tensor *out)
{
    PyObject *tensor = wrap_tensor(out);
    PyObject *truth = tensor ? tensor_item(tensor) : nullptr;
    Py_XDECREF(tensor);
    return truth;
}

PyObject *results_of(const Arguments &arguments, yoke_tensor **outs)
{
    const OpSpec &spec = arguments.spec();
    if (spec.mut_arg >= 0) return new_reference(arguments.object(spec.mut_arg));
    if (spec.result_count == 0) Py_RETURN_NONE;
    if (spec.result_count == 1) {
        if (spec.gives_truth) return truth_of(outs[0]);
        PyObject *first = spec.method ? arguments.object(0) : nullptr;
        if (!first || !is_tensor(first) || handle_of(first) != outs[0]) return wrap_tensor(outs[0]);
        yoke_tensor_release(outs[0]);
        return new_reference(first);
    }
    PyObject *tuple = tuple_of(outs, spec.result_count);
    return tuple && spec.gives_pair ? pair_of(tuple) : tuple;
}

// Calls an op with a list of results, and returns a tuple, or null with an error set. If there are more results than
// fit at first, calls the op again.
PyObject *invoke_list(const Arguments &arguments)
{
    const OpSpec &spec = arguments.spec();
    std::vector<yoke_tensor *> outs(32);
    int64_t count = 0;
    const auto call = [&] {
        return with_relief([&] {
            const ReleaseGil release(arguments.may_wait());
            return yoke_op_invoke_list(spec.id, arguments.values(), spec.passed, outs.data(),
                                       static_cast<int64_t>(outs.size()), &count);
        });
    };
    yoke_status status = call();
    if (status && count > static_cast<int64_t>(outs.size())) {
        outs.resize(static_cast<size_t>(count));
        status = call();
    }
    if (status) return raise_last_error(spec.name);
    PyObject *result =
        spec.may_give_one && count == 1 ? wrap_tensor(outs[0]) : tuple_of(outs.data(), count);
    if (log_waits() && !drain_log()) Py_CLEAR(result);
    return result;
}

yoke_status set_requires_grad(yoke_tensor **outs, int32_t required)
{
    const yoke_status status = yoke_tensor_set_requires_grad(outs[0], required);
    if (status) yoke_tensor_release(outs[0]);
    return status;
}

PyObject *invoke_general(Arguments &arguments)
{
    const OpSpec &spec = arguments.spec();
    yoke_tensor *outs[kMaxOpArgs] = {};
    yoke_status status = with_relief([&] {
        const ReleaseGil release(spec.creates || arguments.may_wait());
        return yoke_op_invoke(spec.id, arguments.values(), spec.passed, outs, spec.result_count);
    });
    if (status == YOKE_OK && arguments.requires_grad()) status = set_requires_grad(outs, 1);
    if (status) return raise_last_error(spec.name);
    PyObject *result = results_of(arguments, outs);
    if (log_waits() && !drain_log()) Py_CLEAR(result);
    return result;
}

PyObject *convert_and_invoke(OpSpec &spec, PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *keywords)
{
    try {
        Arguments arguments(spec);
        if (!arguments.read(self, args, count, keywords)) return nullptr;
        return spec.result_count < 0 ? invoke_list(arguments) : invoke_general(arguments);
    } catch (const std::bad_alloc &) {  // a list too long for memory
        return PyErr_NoMemory();
    }
}

// Returns the argument at a place of the call, by place or by a name; null if it is not given.
PyObject *argument_at(OpSpec &spec, int place, PyObject *self, PyObject *const *args,
                      Py_ssize_t count, PyObject *keywords)
{
    const Py_ssize_t at = place - (self != nullptr);
    if (at < 0) return self;
    if (at < count) return args[at];
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (place_of_keyword(spec, PyTuple_GET_ITEM(keywords, i)) == place) return args[count + i];
    return nullptr;
}

// Returns the argument with this name among the keywords; null if it is not given.
PyObject *keyword_of(PyObject *name, PyObject *const *values, PyObject *keywords)
{
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++) {
        PyObject *each = PyTuple_GET_ITEM(keywords, i);
        if (each == name || PyUnicode_Compare(each, name) == 0) return values[i];
    }
    return nullptr;
}

// Returns whether a call has a form.
bool fits(const Form &form, OpSpec &spec, PyObject *self, PyObject *const *args, Py_ssize_t count,
          PyObject *keywords)
{
    if (form.when == When::kAlone) {
        const Py_ssize_t names = keywords ? PyTuple_GET_SIZE(keywords) : 0;
        return (self != nullptr) + count + names == 1 &&
               argument_at(spec, 0, self, args, count, keywords);
    }
    PyObject *value = form.place < 0 ? keyword_of(form.argument, args + count, keywords)
                                     : argument_at(spec, form.place, self, args, count, keywords);
    if (!value) return false;
    switch (form.when) {
        case When::kUnset:
            return value == Py_None || value == Py_False;
        case When::kTensor:
            return is_tensor(value);
        case When::kList:
            return PyList_Check(value) || PyTuple_Check(value);
        default:
            return true;
    }
}

// Returns the form that a call has, or the op itself. Not inlined, so that the path of small calls stays short.
[[gnu::noinline]] OpSpec &form_of(OpSpec &spec, PyObject *self, PyObject *const *args,
                                  Py_ssize_t count, PyObject *keywords)
{
    for (int i = 0; i < spec.form_count; i++)
        if (fits(spec.forms[i], spec, self, args, count, keywords)) return spec.forms[i].spec;
    return spec;
}

}  // namespace

PyObject *invoke(OpPlace op, PyObject *self, PyObject *const *args, Py_ssize_t count,
                 PyObject *keywords)
{
    OpSpec &spec = op_specs[op];
    sync_modes();
    if (!keywords) {
        const Py_ssize_t all = count + (self != nullptr);
        PyObject *x = self ? self : count ? args[0] : nullptr;
        PyObject *result = nullptr;
        if (all == 2 && spec.takes_pair)
            result = invoke_small<2>(spec, x, args[self ? 0 : 1]);
        else if (all == 1 && spec.takes_one)
            result = invoke_small<1>(spec, x, nullptr);
        if (result || PyErr_Occurred()) return result;
    }
    return convert_and_invoke(form_of(spec, self, args, count, keywords), self, args, count,
                              keywords);
}

OpSpec under_name(OpPlace op, const char *name)
{
    OpSpec spec = op_specs[op];
    spec.name = name;
    spec.seen_count = 0;
    return spec;
}

PyObject *invoke_named(OpSpec &spec, PyObject *self, PyObject *const *args, Py_ssize_t count,
                       PyObject *keywords)
{
    sync_modes();
    return convert_and_invoke(spec, self, args, count, keywords);
}

const char *op_name(OpPlace op)
{
    return op_specs[op].name;
}

PyObject *invoke_operator(OpPlace op, PyObject *x, PyObject *y)
{
    OpSpec &spec = op_specs[op];
    sync_modes();
    PyObject *result = invoke_small<2>(spec, x, y);
    if (result || PyErr_Occurred()) return result;
    const Operands operands(spec.name, x, y);
    if (!operands.ready()) return operands.instead();
    PyObject *const args[] = {operands.x(), operands.y()};
    return convert_and_invoke(spec, nullptr, args, 2, nullptr);
}

namespace {

// Calls the op kOp. Each op has such a function, because a C function gets only its arguments.
template <OpPlace kOp>
PyObject *call_function(PyObject *, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return invoke(kOp, nullptr, args, count, keywords);
}

template <OpPlace kOp>
PyObject *call_method(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return invoke(kOp, self, args, count, keywords);
}

PyMethodDef op_functions[] = {
#define YOKE_PY_OP(name, id, doc) {#name, keywords(call_function<kOp_##name>), kKeywords, doc},
#include "bindings/python/src/values/ops.inc"
#undef YOKE_PY_OP
};

const PyMethodDef op_method_table[] = {
#define YOKE_PY_OP(name, id, doc) {#name, keywords(call_method<kOp_##name>), kKeywords, doc},
#include "bindings/python/src/values/ops.inc"
#undef YOKE_PY_OP
};

}  // namespace

// Makes the class of results that are values and indices, and adds the class to the module.
static bool add_pair_type(PyObject *module)
{
    static PyStructSequence_Field fields[] = {
        {"values", "The values."}, {"indices", "Their places in the tensor."}, {}};
    static PyStructSequence_Desc description = {
        "yoke.ValuesAndIndices", "Values along an axis and their places, a named tuple.", fields,
        2};
    pair_type = PyStructSequence_NewType(&description);
    if (!pair_type) return false;
    Py_INCREF(pair_type);
    return PyModule_AddObject(module, "ValuesAndIndices",
                              reinterpret_cast<PyObject *>(pair_type)) == 0;
}

bool add_op_functions(PyObject *module)
{
    if (!add_pair_type(module)) return false;
    PyObject *package = PyUnicode_InternFromString("yoke");
    bool ok = package != nullptr;
    for (int i = 0; ok && i < kOpCount; i++) {
        PyObject *function = PyCFunction_NewEx(&op_functions[i], nullptr, package);
        ok = function && PyModule_AddObject(module, op_functions[i].ml_name, function) == 0;
    }
    Py_XDECREF(package);
    return ok;
}

void add_op_methods(TensorParts &parts)
{
    static std::string docs[kOpCount];  // a definition borrows its text for good
    for (int i = 0; i < kOpCount; i++) {
        if (!op_specs[i].method) continue;
        // "relu(x)" becomes "relu($self)", CPython's mark for the object itself.
        docs[i] = op_method_table[i].ml_doc;
        docs[i].replace(docs[i].find('(') + 1, std::strlen(op_specs[i].args[0].text), "$self");
        parts.methods.push_back(op_method_table[i]);
        parts.methods.back().ml_doc = docs[i].c_str();
    }
}

}  // namespace yoke_python
