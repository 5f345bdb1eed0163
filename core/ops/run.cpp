#include "core/ops/run.h"

#include "core/ops/autocast.h"
#include "core/ops/call.h"
#include "core/ops/recompute/scope.h"
#include "core/ops/scalar.h"

namespace yoke {

void run(int32_t number, yoke_arg *args, Tensor *results)
{
    const OpDef &op = kOps[number];
    if (autocasts(op)) [[unlikely]]
        return run_autocast(number, args, results);
    if (op.compose) {
        const Composing part_of(op);
        op.compose(args, results);
    } else {
        Call(op, number, args).execute(results);
    }
}

// ---- Ops whose results are a list -----------------------------------------------------------------------------

int64_t count_list(int32_t number, yoke_arg *args)
{
    const OpDef &op = kOps[number];
    const int64_t count = op.count_list(args);
    if (count > kMaxListed)
        fail(YOKE_E_VALUE, "%s: there would be %lld results; a list has at most %lld", op.name,
             static_cast<long long>(count), static_cast<long long>(kMaxListed));
    return count;
}

std::vector<Tensor> run_list(int32_t number, yoke_arg *args)
{
    count_list(number, args);
    const Composing part_of(kOps[number]);
    return kOps[number].compose_list(args);
}

// ---- Arguments of yoke_op_invoke ------------------------------------------------------------------------------

namespace {

const char *given(int32_t kind)
{
    constexpr const char *names[] = {
        "nothing",         "a tensor",          "a bool",   "an int",   "a float",
        "a list of ints",  "a list of tensors", "a string", "a device", "a generator",
        "a list of floats"};
    return kind >= 0 && kind <= YOKE_ARG_FLOATS ? names[kind] : "a value of an unknown kind";
}

bool accepts(ArgType type, const yoke_arg &value)
{
    if (value.kind < 0 || value.kind > YOKE_ARG_FLOATS || !(info_of(type).kinds >> value.kind & 1))
        return false;
    if (type == ArgType::kBool)
        return value.v.i == 0 || value.v.i == 1 || value.kind == YOKE_ARG_BOOL;
    return value.kind != YOKE_ARG_STRING || value.v.string;
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
             given(value.kind), info_of(spec.type).wanted);
    if (spec.type == ArgType::kFloat)
        value = arg_float(scalar_f64(value));
    else if (spec.type == ArgType::kInt || spec.type == ArgType::kBool)
        value.kind = spec.type == ArgType::kInt ? YOKE_ARG_INT : YOKE_ARG_BOOL;
}

}  // namespace yoke
