// The table of ops for hosts that bind without a generator: yoke_op_count, _info, _find, _invoke.
#include "capi/src/args.h"
#include "capi/src/guard.h"
#include "core/base/fork.h"
#include "core/ops/run.h"
#include "yoke/runtime.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Internal ops that are forms of calls: C finds them by name, and bindings call them for core/ops/forms.def.
constexpr int32_t kForms[] = {
#define YOKE_FORM_OP(op) op,
#include "capi/src/form_ops.inc"
#undef YOKE_FORM_OP
};

bool is_public(int32_t op)
{
    return op >= 0 && op < YOKE_PUBLIC_OP_COUNT;
}

// Returns the op's place in the catalogue: forms stand behind the public ops. Returns -1 for any other number.
// Apart from the path of public ops, which must stay short.
[[gnu::noinline]] int32_t place_of(int32_t op)
{
    if (is_public(op)) return op;
    const auto form = std::find(std::begin(kForms), std::end(kForms), op);
    if (form == std::end(kForms)) return -1;
    return static_cast<int32_t>(YOKE_PUBLIC_OP_COUNT + (form - std::begin(kForms)));
}

// The public view of kOps: made at first use, never changed or freed.
struct Catalogue {
    static constexpr int kCount = YOKE_PUBLIC_OP_COUNT + std::size(kForms);
    yoke_op ops[kCount];
    yoke_op_arg args[kCount][kMaxArgs];
    std::unordered_map<std::string_view, int32_t> ids;

    Catalogue()
    {
        for (int32_t id = 0; id < YOKE_PUBLIC_OP_COUNT; ++id) add(id, id, kOps[id]);
        for (const int32_t id : kForms) add(place_of(id), id, kOps[id]);
    }
    void add(int32_t place, int32_t id, const OpDef &def)
    {
        for (int i = 0; i < def.arg_count; ++i) {
            const ArgSpec &spec = def.args[i];
            args[place][i] = {spec.name, info_of(spec.type).name, spec.has_default, spec.by_name,
                              spec.default_value};
        }
        ops[place] = {sizeof(yoke_op),
                      id,
                      def.name,
                      def.signature,
                      def.doc,
                      def.family,
                      args[place],
                      def.arg_count,
                      def.returned_count,
                      def.mut_result,
                      0};
        ids.emplace(def.name, id);
    }
};

const Catalogue &catalogue()
{
    static std::atomic<Catalogue *> made{nullptr};
    return make_once(made, [] { return new Catalogue; });
}

const OpDef &need_op(int32_t op, const char *call)
{
    if (op < 0 || (op >= YOKE_PUBLIC_OP_COUNT && place_of(op) < 0)) [[unlikely]]
        fail(YOKE_E_VALUE, "%s: there is no op %d; ids run from 0 to %d", short_name(call), op,
             YOKE_PUBLIC_OP_COUNT - 1);
    return kOps[op];
}

void check_arg_count(const OpDef &def, const yoke_arg *args, int32_t arg_count)
{
    if (arg_count < 0 || arg_count > def.arg_count || (arg_count && !args))
        fail(YOKE_E_VALUE, "%s: %d arguments%s are given; the op takes at most %d: %s", def.name,
             arg_count, args ? "" : " at NULL", def.arg_count, def.signature);
}

// Raises unless the numbers of arguments and results are those of the op.
void check_counts(const OpDef &def, const yoke_arg *args, int32_t arg_count, yoke_tensor **outs,
                  int32_t out_count)
{
    check_arg_count(def, args, arg_count);
    if (def.returned_count < 0)
        fail(YOKE_E_VALUE, "%s: the results of the op are a list; call yoke_op_invoke_list",
             def.name);
    if (out_count != def.returned_count || (out_count && !outs))
        fail(YOKE_E_VALUE, "%s: %d results%s are given; the op has %d", def.name, out_count,
             outs ? "" : " at NULL", def.returned_count);
}

// Raises for errors that a kind alone does not show: a NULL handle, a list without length, a NULL in a list.
void check_pointers(const OpDef &def, const ArgSpec &spec, const yoke_arg &value)
{
    const bool list = value.kind == YOKE_ARG_INTS || value.kind == YOKE_ARG_TENSORS ||
                      value.kind == YOKE_ARG_FLOATS;
    if (list && value.count < 0)
        fail(YOKE_E_VALUE, "%s: the count of argument '%s' is %d; it cannot be negative", def.name,
             spec.name, value.count);
    const bool pointer = list ? value.count > 0
                              : value.kind == YOKE_ARG_TENSOR || value.kind == YOKE_ARG_DEVICE ||
                                    value.kind == YOKE_ARG_GENERATOR;
    if (pointer && !value.v.tensor)
        fail(YOKE_E_VALUE, "%s: argument '%s' is NULL; it must be given", def.name, spec.name);
    if (value.kind == YOKE_ARG_TENSORS)
        for (int32_t i = 0; i < value.count; ++i)
            if (!value.v.tensors[i])
                fail(YOKE_E_VALUE, "%s: item %d of argument '%s' is NULL; it must be a handle",
                     def.name, i, spec.name);
}

yoke_arg default_of(const OpDef &def, int i)
{
    const ArgSpec &spec = def.args[i];
    if (!spec.has_default && spec.type != ArgType::kOptionalTensor)
        fail(YOKE_E_VALUE, "%s: argument '%s' is missing: %s", def.name, spec.name, def.signature);
    return spec.default_value;
}

// Checks the caller's arguments and copies them to `full`, with defaults for missing arguments.
void complete(const OpDef &def, const yoke_arg *args, int32_t arg_count, yoke_arg *full)
{
    for (int i = 0; i < arg_count; ++i) {
        const ArgSpec &spec = def.args[i];
        full[i] = args[i];
        // Most arguments are single tensors and need no further check.
        if (args[i].kind == YOKE_ARG_TENSOR && args[i].v.tensor && is_single_tensor_type(spec.type))
            [[likely]]
            continue;
        if (args[i].kind == YOKE_ARG_NONE) {
            full[i] = default_of(def, i);
        } else {
            check_arg(def, i, full[i]);
            check_pointers(def, spec, full[i]);
        }
    }
    for (int i = arg_count; i < def.arg_count; ++i) full[i] = default_of(def, i);
}

}  // namespace

int32_t yoke_op_count(void)
{
    return YOKE_PUBLIC_OP_COUNT;
}

const yoke_op *yoke_op_info(int32_t op)
{
    constexpr const char *call = "yoke_op_info";
    return guard_value(call, static_cast<const yoke_op *>(nullptr), [&] {
        need_op(op, call);
        return &catalogue().ops[place_of(op)];
    });
}

yoke_status yoke_op_find(const char *name, int32_t *op)
{
    constexpr const char *call = "yoke_op_find";
    return guard(call, [&] {
        need(op, call, "op");
        const auto &ids = catalogue().ids;
        const auto found = ids.find(&need(name, call, "name"));
        if (found == ids.end())
            fail(YOKE_E_VALUE, "%s: there is no op '%s' in Yoke " YOKE_VERSION, short_name(call),
                 name);
        *op = found->second;
    });
}

yoke_status yoke_op_invoke(int32_t op, const yoke_arg *args, int32_t arg_count, yoke_tensor **outs,
                           int32_t out_count)
{
    constexpr const char *call = "yoke_op_invoke";
    return guard(call, [&] {
        const OpDef &def = need_op(op, call);
        if (outs)
            for (int32_t i = 0; i < out_count; ++i) outs[i] = nullptr;
        check_counts(def, args, arg_count, outs, out_count);
        yoke_arg full[kMaxArgs];
        complete(def, args, arg_count, full);
        const auto lists = resolve_args(full, def.arg_count, def, call);
        Tensor results[kMaxResults];
        run(op, full, results);
        for (int32_t i = 0; i < out_count; ++i) outs[i] = hand_out(std::move(results[i]));
    });
}

yoke_status yoke_op_invoke_list(int32_t op, const yoke_arg *args, int32_t arg_count,
                                yoke_tensor **outs, int64_t capacity, int64_t *count)
{
    constexpr const char *call = "yoke_op_invoke_list";
    return guard(call, [&] {
        need(count, call, "count") = 0;
        const OpDef &def = need_op(op, call);
        if (def.returned_count >= 0)
            fail(YOKE_E_VALUE, "%s: the results of the op are not a list; call yoke_op_invoke",
                 def.name);
        if (capacity > 0) need(outs, call, "outs");
        check_arg_count(def, args, arg_count);
        yoke_arg full[kMaxArgs];
        complete(def, args, arg_count, full);
        const auto lists = resolve_args(full, def.arg_count, def, call);
        give_list(op, full, outs, capacity, count, def.name);
    });
}
