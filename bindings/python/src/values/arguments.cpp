#include "bindings/python/src/values/arguments.h"

#include "bindings/python/src/runtime/parameters.h"

#include <algorithm>

namespace yoke_python {
namespace {

// Raises TypeError with a call's problem, and with how the call is written. Returns false.
bool raise_call(const OpSpec &spec, PyObject *problem)
{
    PyObject *signature = problem ? signature_of(spec) : nullptr;
    if (signature) raise_error(YOKE_E_TYPE, spec.name, "%U: %U", problem, signature);
    Py_XDECREF(signature);
    Py_XDECREF(problem);
    return false;
}

bool raise_count(const OpSpec &spec, Py_ssize_t given)
{
    if (spec.places < spec.arg_count) {
        const char *name = spec.args[spec.places].text;
        return raise_call(
            spec,
            PyUnicode_FromFormat(
                "argument '%s' must be given by name, because PyTorch has another argument in its place; write the name of your argument, such as %s=...",
                name, name));
    }
    return raise_call(
        spec, PyUnicode_FromFormat("takes at most %d argument%s but %zd were given", spec.arg_count,
                                   spec.arg_count == 1 ? "" : "s", given));
}

// Raises for a keyword unknown to the op, with the probable meaning.
bool raise_keyword(const OpSpec &spec, PyObject *name)
{
    const char *words[kMaxOpArgs + 1];
    int count = 0;
    while (count < spec.arg_count) {
        words[count] = spec.args[count].text;
        count++;
    }
    if (spec.creates) words[count++] = "requires_grad";
    return raise_call(spec, unknown_keyword(name, words, count));
}

bool same_text(PyObject *a, PyObject *b)
{
    return a == b || PyUnicode_Compare(a, b) == 0;
}

}  // namespace

Arguments::~Arguments()
{
    for (int i = 0; i < held_count_; i++) yoke_tensor_release(held_[i]);
    for (yoke_tensor *tensor : held_more_) yoke_tensor_release(tensor);
}

void Arguments::hold(yoke_tensor *tensor)
{
    yoke_tensor_retain(tensor);
    if (held_count_ < 4)
        held_[held_count_++] = tensor;
    else
        held_more_.push_back(tensor);
    bytes_ += yoke_tensor_nbytes(tensor);
    may_wait_ = may_wait_ || bytes_ > kGilBytes || yoke_python::may_wait(tensor);
}

bool Arguments::read(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    if (!place(self, args, count)) return false;
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (!place_keyword(PyTuple_GET_ITEM(keywords, i), args[count + i])) return false;
    for (int i = 0; i < spec_.arg_count; i++)
        if (!convert(i)) return false;
    return true;
}

bool Arguments::place(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Py_ssize_t own = self != nullptr;
    if (spec_.spread >= own) find_spread(args, count, own);
    const Py_ssize_t taken = spread_count_ - 1;
    if (count + own - taken > spec_.places) return raise_count(spec_, count + own);
    if (self) objects_[0] = self;
    for (Py_ssize_t i = 0; i < count; i++) {
        const Py_ssize_t to = own + i;
        objects_[to <= spec_.spread || !taken ? to
                                              : std::max<Py_ssize_t>(to - taken, spec_.spread)] =
            args[i];
    }
    return true;
}

// Finds ints in place of a list, as in randn(2, 3).
void Arguments::find_spread(PyObject *const *args, Py_ssize_t count, Py_ssize_t own)
{
    const Py_ssize_t first = spec_.spread - own;
    Py_ssize_t end = first;
    while (end < count && is_lone_int(args[end]) && !PyBool_Check(args[end])) end++;
    if (end - first < 2) return;
    spread_ = args + first;
    spread_count_ = end - first;
}

bool Arguments::place_keyword(PyObject *name, PyObject *value)
{
    for (int i = 0; i < spec_.arg_count; i++) {
        if (!same_text(name, spec_.args[i].name)) continue;
        if (objects_[i]) {
            raise_error(YOKE_E_TYPE, spec_.name, "argument '%U' is given twice; give it once",
                        name);
            return false;
        }
        objects_[i] = value;
        return true;
    }
    if (spec_.creates && PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0)
        return to_bool(value, {spec_.name, "requires_grad"}, &requires_grad_);
    return raise_keyword(spec_, name);
}

bool Arguments::convert(int i)
{
    const ArgSpec &arg = spec_.args[i];
    PyObject *value = objects_[i];
    yoke_arg *to = &values_[i];  // kind NONE: the default
    const Place place{spec_.name, arg.text};
    if (!value && arg.required)
        return raise_call(spec_, PyUnicode_FromFormat("argument '%s' is missing", arg.text));
    if (!value || (value == Py_None && arg.none)) return true;
    int32_t truth = 0;
    switch (arg.kind) {
        case ArgKind::kTensor:
            return convert_tensor(place, value, to);
        case ArgKind::kOperand:
            if (is_tensor(value)) return convert_tensor(place, value, to);
            if (!is_number(value))
                return raise_type(place, "a tensor or a number", value) != nullptr;
            return to_scalar(value, place, to);
        case ArgKind::kTensors:
            return convert_tensors(place, value, to);
        case ArgKind::kInt:
            to->kind = YOKE_ARG_INT;
            return to_int64(value, place, &to->v.i);
        case ArgKind::kInts:
            return convert_ints(place, value, spread_ && i == spec_.spread, to);
        case ArgKind::kFloat:
            to->kind = YOKE_ARG_FLOAT;
            return to_double(value, place, &to->v.f);
        case ArgKind::kBool:
            to->kind = YOKE_ARG_BOOL;
            if (!to_bool(value, place, &truth)) return false;
            to->v.i = truth;
            return true;
        case ArgKind::kDtype: {
            yoke_dtype dtype = YOKE_NONE;
            if (value == Py_None)
                return raise_type(place, "a dtype such as yoke.float32", value) != nullptr;
            if (!to_dtype(value, place, &dtype)) return false;
            to->kind = YOKE_ARG_INT;
            to->v.i = dtype;
            return true;
        }
        case ArgKind::kScalar:
            return to_scalar(value, place, to);
        case ArgKind::kString:
            to->kind = YOKE_ARG_STRING;
            return to_text(value, place, &to->v.string);
        case ArgKind::kDevice:
            to->kind = YOKE_ARG_DEVICE;
            return to_device(value, place, &to->v.device);
    }
    return false;
}

bool Arguments::convert_tensor(const Place &place, PyObject *value, yoke_arg *to)
{
    to->kind = YOKE_ARG_TENSOR;
    to->v.tensor = tensor_argument(value, place);
    if (!to->v.tensor) return false;
    hold(to->v.tensor);
    return true;
}

bool Arguments::convert_tensors(const Place &place, PyObject *value, yoke_arg *to)
{
    if (is_tensor(value) || !PySequence_Check(value) || PyUnicode_Check(value))
        return raise_type(place, "a sequence of tensors", value) != nullptr;
    PyObject *items = PySequence_Tuple(value);
    if (!items) return false;
    std::vector<yoke_tensor *> &list = lists_[list_count_++];
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        yoke_tensor *tensor = is_tensor(item) ? handle_of(item) : nullptr;
        if (!tensor) {
            raise_error(
                is_tensor(item) ? YOKE_E_CLOSED : YOKE_E_TYPE, place.call,
                is_tensor(item)
                    ? "argument '%s' holds a closed %.100s at position %zd; it must hold open tensors"
                    : "argument '%s' holds a %.100s at position %zd; it must hold tensors",
                place.argument, Py_TYPE(item)->tp_name, i);
            Py_DECREF(items);
            return false;
        }
        hold(tensor);
        list.push_back(tensor);
    }
    Py_DECREF(items);
    to->kind = YOKE_ARG_TENSORS;
    to->count = static_cast<int32_t>(list.size());
    to->v.tensors = list.data();
    return true;
}

bool Arguments::convert_ints(const Place &place, PyObject *value, bool spread, yoke_arg *to)
{
    std::vector<int64_t> &list = ints_[ints_count_++];
    PyObject *const *from = spread ? spread_ : &value;
    for (Py_ssize_t i = 0, count = spread ? spread_count_ : 1; i < count; i++)
        if (!to_ints(from[i], place, &list)) return false;
    to->kind = YOKE_ARG_INTS;
    to->count = static_cast<int32_t>(list.size());
    to->v.ints = list.data();
    return true;
}

}  // namespace yoke_python
