#include "bindings/python/src/values/op_spec.h"

#include <cstring>
#include <iterator>
#include <string>

namespace yoke_python {

OpSpec op_specs[kOpCount];

namespace {

struct Row {
    const char *name, *doc;
};

const Row kRows[] = {
#define YOKE_PY_OP(name, id, doc) {#name, doc},
#include "bindings/python/src/values/ops.inc"
#undef YOKE_PY_OP
};

constexpr int kMaxFormArgs = 4;

struct FormRow {
    OpPlace call;
    When when;
    const char *argument;
    int place;
    const char *op, *doc;
    int places, arg_count;
    struct {
        const char *name;
        int at;
    } args[kMaxFormArgs];
};

constexpr FormRow kFormRows[] = {
#define YOKE_FORM(call, when, argument, place, op, doc, places, count, ...) \
    {kOp_##call, When::when, argument, place, op, doc, places, count, {__VA_ARGS__}},
#include "bindings/python/src/values/forms.inc"
#undef YOKE_FORM
};

Form forms[std::size(kFormRows)];

struct TypeName {
    const char *text;
    ArgKind kind;
    bool none;
};

const TypeName kTypes[] = {
#define YOKE_PY_TYPE(text, kind, none) {text, ArgKind::kind, none},
    YOKE_PY_FOR_EACH_ARG_TYPE(YOKE_PY_TYPE)
#undef YOKE_PY_TYPE
};

// In the order of ArgKind: whether a number may stand for the argument.
constexpr bool kTakesNumber[] = {
#define YOKE_PY_NUMBER(kind, number) number,
    YOKE_PY_FOR_EACH_ARG_KIND(YOKE_PY_NUMBER)
#undef YOKE_PY_NUMBER
};

const TypeName *find_type(const char *text)
{
    for (const TypeName &type : kTypes)
        if (std::strcmp(type.text, text) == 0) return &type;
    return nullptr;
}

bool read_arg(const yoke_op_arg &from, ArgSpec *to)
{
    const TypeName *type = find_type(from.type);
    if (!type) {
        PyErr_Format(
            PyExc_ImportError,
            "libyoke has an argument type \"%s\" that this package does not support; install a package and a library of the same version",
            from.type);
        return false;
    }
    to->name = PyUnicode_InternFromString(from.name);
    to->text = from.name;
    to->kind = type->kind;
    to->none = type->none;
    to->required = !from.has_default && !type->none;
    // A dtype without a default must be given, as in cast(x, dtype).
    if (type->kind == ArgKind::kDtype && !from.has_default) to->none = !(to->required = true);
    return to->name != nullptr;
}

bool takes_tensor(const ArgSpec &arg)
{
    return arg.kind == ArgKind::kTensor || arg.kind == ArgKind::kOperand;
}

// Returns whether `count` tensors, alone, are a call of the op.
bool takes_tensors(const OpSpec &spec, int count)
{
    if (spec.places < count || spec.result_count != 1) return false;
    for (int i = 0; i < spec.arg_count; i++)
        if (i < count ? !takes_tensor(spec.args[i]) : spec.args[i].required) return false;
    return true;
}

int list_count(const yoke_op &op)
{
    int count = 0;
    for (int i = 0; i < op.arg_count; i++) {
        const TypeName *type = find_type(op.args[i].type);
        count += type && (type->kind == ArgKind::kTensors || type->kind == ArgKind::kInts);
    }
    return count;
}

bool takes_number(const ArgSpec &arg)
{
    return kTakesNumber[static_cast<size_t>(arg.kind)];
}

// Returns the place of a list of ints that may be spread: the last required argument, as in randn(2, 3). Returns -1
// if there is no such list, or if a number may follow it: split(x, 2, 1) is of size 2 along axis 1.
int spread_of(const OpSpec &spec)
{
    int last = spec.arg_count - 1;
    while (last >= 0 && !spec.args[last].required) last--;
    if (last < 0 || spec.args[last].kind != ArgKind::kInts) return -1;
    return last + 1 < spec.arg_count && takes_number(spec.args[last + 1]) ? -1 : last;
}

// Returns whether the op reads elements of a device to size its result: the call may wait long, even for small
// tensors.
bool reads_back(const char *name)
{
    for (const char *one : {"nonzero", "masked_select", "bincount", "histc", "repeat_interleave"})
        if (std::strcmp(name, one) == 0) return true;
    return false;
}

// Returns whether the signature of the op ends in "-> tensor or tensors".
bool may_give_one(const char *signature)
{
    return std::strstr(signature, "-> tensor or tensors") != nullptr;
}

// Returns whether the op's results are values and their indices.
bool gives_pair(const OpSpec &spec)
{
    if (spec.result_count != 2) return false;
    for (const char *name :
         {"sort", "topk", "max", "min", "median", "mode", "kthvalue", "cummax", "cummin"})
        if (strcmp(spec.name, name) == 0) return true;
    return false;
}

// Returns the list of tensors that may stand one by one, as in einsum("ij,jk", x, y) and meshgrid(x, y); -1 for other
// ops.
int gathers(const OpSpec &spec)
{
    if (std::strcmp(spec.name, "meshgrid") == 0) return 0;
    const int last = spec.places - 1;
    return last > 0 && spec.args[last].kind == ArgKind::kTensors ? last : -1;
}

// Returns the place of the lower bound that a call may leave out, as in randint(high, shape); -1 for other ops.
int low_of(const OpSpec &spec)
{
    if (strcmp(spec.name, "randint") != 0 && strcmp(spec.name, "randint_like") != 0) return -1;
    for (int i = 0; i < spec.arg_count; i++)
        if (strcmp(spec.args[i].text, "low") == 0) return i;
    return -1;
}

// Returns whether scripts get the op's result as a bool.
bool gives_truth(const char *name)
{
    return strcmp(name, "allclose") == 0 || strcmp(name, "equal") == 0;
}

bool find_op(const char *name, int32_t *id)
{
    if (!yoke_op_find(name, id)) return true;
    PyErr_Format(PyExc_ImportError,
                 "libyoke %s has no op \"%s\"; install a package and a library of the same version",
                 yoke_version(), name);
    return false;
}

bool read_op(const char *name, OpSpec *spec)
{
    if (!find_op(name, &spec->id)) return false;
    const yoke_op &op = *yoke_op_info(spec->id);
    if (op.arg_count > kMaxOpArgs || list_count(op) > kMaxOpLists) {
        PyErr_Format(
            PyExc_ImportError,
            "op \"%s\" takes %d arguments, %d of them lists; this package supports at most %d and %d; install a package and a library of the same version",
            name, op.arg_count, list_count(op), kMaxOpArgs, kMaxOpLists);
        return false;
    }
    spec->name = name;
    spec->arg_count = spec->passed = op.arg_count;
    spec->result_count = op.result_count;
    spec->mut_arg = op.mut_arg;
    for (int i = 0; i < op.arg_count; i++) {
        if (!read_arg(op.args[i], &spec->args[i])) return false;
        spec->args[i].at = i;
        spec->creates |= spec->args[i].kind == ArgKind::kDevice;
        spec->places += !op.args[i].by_name;
    }
    spec->spread = spread_of(*spec);
    spec->may_give_one = may_give_one(op.signature);
    spec->takes_one = takes_tensors(*spec, 1) && !reads_back(name);
    spec->gives_truth = gives_truth(name);
    spec->takes_pair = takes_tensors(*spec, 2) && !reads_back(name) && !spec->gives_truth;
    spec->takes_scalar = spec->takes_pair && spec->args[0].kind == ArgKind::kOperand &&
                         spec->args[1].kind == ArgKind::kOperand;
    spec->gives_pair = gives_pair(*spec);
    spec->gathers = gathers(*spec);
    spec->low = low_of(*spec);
    spec->method = spec->arg_count > 0 && takes_tensor(spec->args[0]) && !spec->args[0].none;
    return true;
}

// Reads argument `i` of a form. An argument that the binding alone reads, behind the op's own, is a bool or None.
bool read_form_arg(const FormRow &row, int i, const yoke_op &op, ArgSpec *to)
{
    const int at = row.args[i].at;
    const yoke_op_arg truth{row.args[i].name, "bool", 1, 1, {}};
    if (!read_arg(at < op.arg_count ? op.args[at] : truth, to)) return false;
    to->name = PyUnicode_InternFromString(row.args[i].name);
    to->text = row.args[i].name;
    to->at = at;
    to->none = to->none || at >= op.arg_count;
    to->lifts = to->kind == ArgKind::kTensor && to->none;
    return to->name != nullptr;
}

bool read_form(const FormRow &row, Form *form)
{
    OpSpec &call = op_specs[row.call], &spec = form->spec;
    if (!find_op(row.op, &spec.id)) return false;
    const yoke_op &op = *yoke_op_info(spec.id);
    form->when = row.when;
    form->argument = PyUnicode_InternFromString(row.argument);
    form->place = row.place;
    spec.name = call.name;
    spec.doc = row.doc;
    spec.arg_count = row.arg_count;
    spec.places = row.places;
    spec.passed = op.arg_count;
    spec.result_count = op.result_count;
    spec.mut_arg = op.mut_arg;
    spec.method = call.method;
    spec.spread = spec.gathers = spec.low = -1;
    for (int i = 0; i < row.arg_count; i++)
        if (!read_form_arg(row, i, op, &spec.args[i])) return false;
    if (!call.form_count++) call.forms = form;
    return form->argument != nullptr;
}

}  // namespace

bool init_ops()
{
    for (int i = 0; i < kOpCount; i++) {
        op_specs[i].doc = kRows[i].doc;
        if (!read_op(kRows[i].name, &op_specs[i])) return false;
    }
    for (size_t i = 0; i < std::size(kFormRows); i++)
        if (!read_form(kFormRows[i], &forms[i])) return false;
    return true;
}

PyObject *signature_of(const OpSpec &spec)
{
    const char *from = std::strchr(spec.doc, '(');
    const std::string arguments(from, std::strchr(from, '\n'));
    return PyUnicode_FromFormat("%s%s", spec.name, arguments.c_str());
}

}  // namespace yoke_python
