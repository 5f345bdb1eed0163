#include "bindings/python/src/values/arguments.h"

#include "bindings/python/src/runtime/other_names.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/elements.h"

#include <algorithm>
#include <cstring>

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

// Puts the names of the op's arguments into `words`, and returns their number.
int names_of(const OpSpec &spec, const char **words)
{
    for (int i = 0; i < spec.arg_count; i++) words[i] = spec.args[i].text;
    return spec.arg_count;
}

constexpr int kMaxFormWords = 4;

// Raises for a keyword unknown to the op, with the probable meaning.
bool raise_keyword(const OpSpec &spec, PyObject *name)
{
    const char *words[kMaxOpArgs + 1 + kMaxFormWords];
    int count = names_of(spec, words);
    if (spec.creates) words[count++] = "requires_grad";
    for (int i = 0; i < spec.form_count && i < kMaxFormWords; i++)
        if (spec.forms[i].when == When::kGiven)
            words[count++] = PyUnicode_AsUTF8(spec.forms[i].argument);
    return raise_call(spec, unknown_keyword(name, words, count));
}

// Returns the place of the argument with this name, or -1. A name of a script's code is interned, so pointers decide.
int place_of(const OpSpec &spec, PyObject *name)
{
    for (int i = 0; i < spec.arg_count; i++)
        if (name == spec.args[i].name) return i;
    if (PyUnicode_CHECK_INTERNED(name)) return -1;
    for (int i = 0; i < spec.arg_count; i++)
        if (PyUnicode_Compare(name, spec.args[i].name) == 0) return i;
    return -1;
}

// Returns what another name means, from the names seen before or from the table; the place is -1 for an unknown name.
SeenName other_name(OpSpec &spec, PyObject *name)
{
    for (int i = 0; i < spec.seen_count; i++)
        if (name == spec.seen[i].name) return spec.seen[i];
    const char *words[kMaxOpArgs];
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) PyErr_Clear();  // a lone surrogate is no name
    const OtherName found = text ? find_other_name(spec.name, text, words, names_of(spec, words))
                                 : OtherName{-1, false};
    const SeenName seen{name, found.place, found.is_flag};
    if (found.place >= 0 && PyUnicode_CHECK_INTERNED(name) && spec.seen_count < kMaxSeenNames) {
        spec.seen[spec.seen_count++] = seen;
        Py_INCREF(name);  // for good
    }
    return seen;
}

}  // namespace

int place_of_keyword(OpSpec &spec, PyObject *name)
{
    const int place = place_of(spec, name);
    return place >= 0 ? place : other_name(spec, name).place;
}

Arguments::~Arguments()
{
    for (int i = 0; i < held_count_; i++) yoke_tensor_release(held_[i]);
    for (yoke_tensor *tensor : held_more_) yoke_tensor_release(tensor);
    Py_XDECREF(gathered_);
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
    keywords_ = keywords;
    if (!place(self, args, count)) return false;
    for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++)
        if (!place_keyword(PyTuple_GET_ITEM(keywords, i), args[count + i])) return false;
    if (spec_.low >= 0) fill_low();
    for (int i = 0; i < spec_.arg_count; i++)
        if (!convert(i)) return false;
    return true;
}

bool Arguments::place(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const Py_ssize_t own = self != nullptr;
    if (spec_.gathers >= 0 && !gather(args, &count, own)) return false;
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
    if (gathered_) objects_[spec_.gathers] = gathered_;
    return true;
}

// Finds tensors in place of a list, as in einsum("ij,jk", x, y). Leaves the arguments before in `count`.
bool Arguments::gather(PyObject *const *args, Py_ssize_t *count, Py_ssize_t own)
{
    const Py_ssize_t first = spec_.gathers - own;
    if (*count <= first || !is_tensor(args[first])) return true;
    gathered_ = PyTuple_New(*count - first);
    if (!gathered_) return false;
    for (Py_ssize_t i = first; i < *count; i++)
        PyTuple_SET_ITEM(gathered_, i - first, new_reference(args[i]));
    *count = first;
    return true;
}

// Reads randint(high, shape) and randint_like(x, high), whose lower bound is 0.
void Arguments::fill_low()
{
    PyObject **low = &objects_[spec_.low], **high = low + 1;
    const bool has_shape = spec_.low + 2 < spec_.arg_count && spec_.args[spec_.low + 2].required;
    if (has_shape && *high && !is_lone_int(*high) && !low[2]) {
        low[2] = *high;
        *high = nullptr;
    }
    if (!*high) {
        *high = *low;
        *low = nullptr;
    }
    if (*low || !*high) return;
    *low = PyLong_FromLong(0);
    Py_XDECREF(*low);  // Python itself holds small numbers for good
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
    const int i = place_of(spec_, name);
    if (i >= 0) {
        if (objects_[i]) return raise_twice(i, name);
        objects_[i] = value;
        return true;
    }
    const SeenName seen = other_name(spec_, name);
    if (seen.place >= 0) return place_other(name, seen, value);
    if (spec_.creates && PyUnicode_CompareWithASCIIString(name, "requires_grad") == 0)
        return to_bool(value, {spec_.name, "requires_grad"}, &requires_grad_);
    return raise_keyword(spec_, name);
}

bool Arguments::place_other(PyObject *name, const SeenName &seen, PyObject *value)
{
    if (objects_[seen.place]) return raise_twice(seen.place, name);
    if (seen.is_flag) value = flag_number(spec_.name, PyUnicode_AsUTF8(name), value);
    objects_[seen.place] = value;
    return value != nullptr;
}

// Raises for an argument that is there already, by place or by a name, and comes again as `name`.
bool Arguments::raise_twice(int i, PyObject *name) const
{
    const char *first = spec_.args[i].text, *second = PyUnicode_AsUTF8(name);
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords_); k++) {
        PyObject *each = PyTuple_GET_ITEM(keywords_, k);
        if (each == name) break;
        if (place_of(spec_, each) < 0 && other_name(spec_, each).place == i)
            first = PyUnicode_AsUTF8(each);
    }
    if (second && first && std::strcmp(first, second) != 0)
        return raise_both_names(spec_.name, first, second);
    raise_error(YOKE_E_TYPE, spec_.name, "argument '%U' is given twice; give it once", name);
    return false;
}

bool Arguments::convert(int i)
{
    const ArgSpec &arg = spec_.args[i];
    PyObject *value = objects_[i];
    yoke_arg *to = &values_[arg.at];  // kind NONE: the default
    const Place place{spec_.name, arg.text};
    if (!value && arg.required)
        return raise_call(spec_, PyUnicode_FromFormat("argument '%s' is missing", arg.text));
    if (!value || (value == Py_None && arg.none)) return true;
    int32_t truth = 0;
    switch (arg.kind) {
        case ArgKind::kTensor:
            if (arg.lifts && !is_tensor(value))
                return is_number(value)
                           ? lift_number(place, value, to)
                           : raise_type(place, "a tensor or a number", value) != nullptr;
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
        case ArgKind::kFloats:
            return convert_floats(place, value, to);
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
        case ArgKind::kGenerator:
            return to_generator(value, place, to);
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

// Makes a tensor without axes of a number beside tensors: on the device of the first argument and in its dtype, or in
// float32 where this dtype has no fractions and the number has.
bool Arguments::lift_number(const Place &place, PyObject *value, yoke_arg *to)
{
    yoke_scalar number{};
    if (!to_scalar(value, place, &number)) return false;
    yoke_tensor *const like = values_[0].v.tensor;
    yoke_dtype dtype = yoke_tensor_dtype(like);
    if (number.kind == YOKE_ARG_FLOAT && !is_floating(dtype)) dtype = YOKE_F32;
    to->kind = YOKE_ARG_TENSOR;
    if (yoke_tensor_scalar(&number, dtype, yoke_tensor_device(like), &to->v.tensor))
        return raise_error(
                   YOKE_E_VALUE, place.call,
                   "argument '%s' is %R, which does not fit into %s; give a smaller number, or cast x to a wider dtype",
                   place.argument, value, yoke_dtype_name(dtype)) != nullptr;
    hold(to->v.tensor);
    yoke_tensor_release(to->v.tensor);
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
    if (list.empty() && empty_means_every_axis(place)) return true;  // an absent argument
    to->kind = YOKE_ARG_INTS;
    to->count = static_cast<int32_t>(list.size());
    to->v.ints = list.data();
    return true;
}

bool Arguments::convert_floats(const Place &place, PyObject *value, yoke_arg *to)
{
    if (!to_doubles(value, place, &floats_)) return false;
    to->kind = YOKE_ARG_FLOATS;
    to->count = static_cast<int32_t>(floats_.size());
    to->v.floats = floats_.data();
    return true;
}

}  // namespace yoke_python
