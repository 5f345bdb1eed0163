#include "capi/src/args.h"

#include "capi/src/guard.h"
#include "core/ops/run.h"

namespace yoke::capi {

namespace {

[[noreturn]] __attribute__((cold, noinline)) void fail_argument(const char *name,
                                                                const char *argument,
                                                                const yoke_arg &bad)
{
    const char *call = short_name(name);
    const auto number = static_cast<long long>(bad.v.i);
    switch (bad.kind) {
        case kBadItem:
            fail(YOKE_E_VALUE, "%s: item %d of argument '%s' is NULL; it must be a handle", call,
                 bad.count, argument);
        case kBadCount:
            fail(YOKE_E_VALUE, "%s: the count of argument '%s' is %lld; it must be 0 to %d", call,
                 argument, number, INT32_MAX);
        case kBadItems:
            fail(YOKE_E_VALUE,
                 "%s: argument '%s' is NULL, but its count is %lld; give a pointer to the items",
                 call, argument, number);
        case kBadScalar:
            fail(
                YOKE_E_TYPE,
                "%s: argument '%s' has kind %lld; the kind of a scalar must be YOKE_ARG_BOOL, _INT or _FLOAT",
                call, argument, number);
        default:
            fail_null(name, argument);
    }
}

// Raises for an argument that could not be converted.
void check_arguments(const char *name, int32_t op, const yoke_arg *args, int arg_count)
{
    int32_t kinds = 0;
    for (int i = 0; i < arg_count; ++i) kinds |= args[i].kind;
    if (kinds < 0) [[unlikely]]
        for (int i = 0; i < arg_count; ++i)
            if (args[i].kind < 0) fail_argument(name, kOps[op].args[i].name, args[i]);
}

// Sets every output to NULL until the call has succeeded, even if another output is missing. Raises YOKE_E_VALUE for
// a missing output.
void clear_outs(const char *name, yoke_tensor **const *outs, int count)
{
    constexpr const char *kNames[kMaxResults] = {"out0", "out1", "out2", "out3"};
    const char *missing = nullptr;
    for (int i = count - 1; i >= 0; --i)
        if (outs[i])
            *outs[i] = nullptr;
        else
            missing = count == 1 ? "out" : kNames[i];
    if (missing) [[unlikely]]
        fail_null(name, missing);
}

}  // namespace

yoke_status run_call(const char *name, int32_t op, yoke_arg *args, int arg_count,
                     yoke_tensor **const *outs, int out_count) noexcept
{
    return guard(name, [&] {
        clear_outs(name, outs, out_count);
        check_arguments(name, op, args, arg_count);
        const auto lists = resolve_args(args, arg_count, kOps[op], name);
        Tensor results[kMaxResults];
        run(op, args, results);
        for (int i = 0; i < out_count; ++i) *outs[i] = hand_out(std::move(results[i]));
    });
}

void give_list(int32_t op, yoke_arg *args, yoke_tensor **outs, int64_t capacity, int64_t *count,
               const char *call)
{
    *count = count_list(op, args);
    if (*count > capacity)
        fail(
            YOKE_E_VALUE,
            "%s: the call has %lld results, but argument 'capacity' is %lld; give a larger capacity",
            call, static_cast<long long>(*count), static_cast<long long>(capacity));
    std::vector<Tensor> results = run_list(op, args);
    for (size_t i = 0; i < results.size(); ++i) outs[i] = hand_out(std::move(results[i]));
}

yoke_status run_list_call(const char *name, int32_t op, yoke_arg *args, int arg_count,
                          yoke_tensor **outs, int64_t capacity, int64_t *count) noexcept
{
    return guard(name, [&] {
        need(count, name, "count") = 0;
        if (capacity > 0) need(outs, name, "outs");
        check_arguments(name, op, args, arg_count);
        const auto lists = resolve_args(args, arg_count, kOps[op], name);
        give_list(op, args, outs, capacity, count, short_name(name));
    });
}

}  // namespace yoke::capi
