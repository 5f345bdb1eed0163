// check_arg.cpp: what yoke_op_invoke lets through: argument kinds against the op table.
#include "core/ops/run.h"

namespace yoke {

namespace {

const char *wanted(ArgType type)
{
    switch (type) {
        case ArgType::kTensor:
        case ArgType::kMut:
            return "a tensor";
        case ArgType::kOptionalTensor:
            return "a tensor or nothing";
        case ArgType::kOperand:
            return "a tensor or a number";
        case ArgType::kTensors:
        case ArgType::kMuts:
            return "a list of tensors";
        case ArgType::kInt:
            return "an int";
        case ArgType::kOptionalInt:
            return "an int or nothing";
        case ArgType::kInts:
            return "a list of ints";
        case ArgType::kOptionalInts:
            return "a list of ints or nothing";
        case ArgType::kFloat:
            return "a number";
        case ArgType::kBool:
            return "a bool";
        case ArgType::kDtype:
            return "a dtype";
        case ArgType::kScalar:
            return "a number";
        case ArgType::kOptionalScalar:
            return "a number or nothing";
        case ArgType::kString:
            return "a string";
        case ArgType::kDevice:
            return "a device";
    }
    return "something else";
}

const char *given(int32_t kind)
{
    constexpr const char *names[] = {
        "nothing",        "a tensor",          "a bool",   "an int",  "a float",
        "a list of ints", "a list of tensors", "a string", "a device"};
    return kind >= 0 && kind <= YOKE_ARG_DEVICE ? names[kind] : "a value of an unknown kind";
}

bool accepts(ArgType type, const yoke_arg &value)
{
    const int32_t kind = value.kind;
    switch (type) {
        case ArgType::kTensor:
        case ArgType::kMut:
            return kind == YOKE_ARG_TENSOR;
        case ArgType::kOptionalTensor:
            return kind == YOKE_ARG_TENSOR || kind == YOKE_ARG_NONE;
        case ArgType::kOperand:
            return kind == YOKE_ARG_TENSOR || is_scalar(value);
        case ArgType::kTensors:
        case ArgType::kMuts:
            return kind == YOKE_ARG_TENSORS;
        case ArgType::kInt:
            return kind == YOKE_ARG_INT || kind == YOKE_ARG_BOOL;
        case ArgType::kOptionalInt:
            return kind == YOKE_ARG_INT || kind == YOKE_ARG_NONE;
        case ArgType::kInts:
            return kind == YOKE_ARG_INTS;
        case ArgType::kOptionalInts:
            return kind == YOKE_ARG_INTS || kind == YOKE_ARG_NONE;
        case ArgType::kFloat:
        case ArgType::kScalar:
            return is_scalar(value);
        case ArgType::kOptionalScalar:
            return is_scalar(value) || kind == YOKE_ARG_NONE;
        case ArgType::kBool:
            return kind == YOKE_ARG_BOOL ||
                   (kind == YOKE_ARG_INT && (value.v.i == 0 || value.v.i == 1));
        case ArgType::kDtype:
            return kind == YOKE_ARG_INT || kind == YOKE_ARG_NONE;
        case ArgType::kString:
            return kind == YOKE_ARG_STRING && value.v.string;
        case ArgType::kDevice:
            return kind == YOKE_ARG_DEVICE || kind == YOKE_ARG_NONE;
    }
    return false;
}

}  // namespace

void check_arg(const OpDef &op, int arg, yoke_arg &value)
{
    const ArgSpec &spec = op.args[arg];
    if (value.kind == YOKE_ARG_NONE && spec.has_default) {
        value = spec.default_value;
        return;
    }
    if (spec.type == ArgType::kDtype && value.kind == YOKE_ARG_INT &&
        (value.v.i < 0 || value.v.i >= YOKE_DTYPE_COUNT))
        fail(YOKE_E_TYPE, "%s: argument '%s' is %lld; a dtype is a number from 0 (none) to %d",
             op.name, spec.name, static_cast<long long>(value.v.i), YOKE_DTYPE_COUNT - 1);
    if (!accepts(spec.type, value))
        fail(YOKE_E_TYPE, "%s: argument '%s' is %s; it takes %s", op.name, spec.name,
             given(value.kind), wanted(spec.type));
    if (spec.type == ArgType::kFloat)
        value = arg_float(scalar_f64(value));
    else if (spec.type == ArgType::kInt || spec.type == ArgType::kBool)
        value.kind = spec.type == ArgType::kInt ? YOKE_ARG_INT : YOKE_ARG_BOOL;
}

}  // namespace yoke
