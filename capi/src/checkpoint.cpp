#include "yoke/checkpoint.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/base/config.h"
#include "core/base/text.h"
#include "core/ops/recompute/budget.h"
#include "core/ops/recompute/scope.h"

#include <cstring>

using namespace yoke;
using namespace yoke::capi;

namespace {

Ref<Policy> policy_of_ops(const yoke_checkpoint_options &options, const char *call)
{
    std::vector<std::string_view> names;
    for (const char *name : need_list(options.ops, options.op_count, call, "options.ops"))
        names.emplace_back(&need(name, call, "options.ops"));
    return Policy::ops(names, short_name(call));
}

// Policy that asks the host program's function.
class HostPolicy final : public Policy {
public:
    HostPolicy(yoke_checkpoint_decide_fn decide, void *user) : decide_(decide), user_(user) {}
    bool holds(const LoggedCall &) const noexcept override { return true; }
    bool is_asked() const noexcept override { return true; }
    Fate fate(const LoggedCall &call) override
    {
        const CallResults results = results_of(call);
        const yoke_checkpoint_op op{sizeof op,
                                    results.dtype,
                                    public_name(call.named),
                                    results.shape.data(),
                                    static_cast<int64_t>(results.shape.size()),
                                    static_cast<int64_t>(results.bytes),
                                    call.launch().work};
        const int32_t answer = decide_(user_, &op);
        switch (answer) {
            case YOKE_CHECKPOINT_RECOMPUTE:
                return Fate::kGo;
            case YOKE_CHECKPOINT_KEEP:
                return Fate::kStay;
            case YOKE_CHECKPOINT_OFFLOAD:
                return Fate::kOffload;
        }
        fail(
            YOKE_E_VALUE,
            "checkpoint_end: the policy's function returned %d for %s; it must return YOKE_CHECKPOINT_RECOMPUTE (0), _KEEP (1) or _OFFLOAD (2)",
            answer, op.name);
    }

private:
    const yoke_checkpoint_decide_fn decide_;
    void *const user_;
};

Ref<Policy> policy_of_function(const yoke_checkpoint_options &options, const char *call)
{
    if (!options.decide)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'policy' is \"function\", but 'decide' is NULL; give the function that decides",
            short_name(call));
    return Ref<HostPolicy>::adopt(new HostPolicy(options.decide, options.user));
}

Ref<Scope> open_budget(const yoke_checkpoint_options &options, const char *call)
{
    if (!options.budget)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'policy' is \"budget\", but 'budget' is NULL; give a budget that yoke_memory_budget_create returned",
            short_name(call));
    if (options.offload)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'offload' is %d, but 'policy' is \"budget\", which plans only memory of the device; give only one of the two",
            short_name(call), options.offload);
    return Scope::open(need_ref(options.budget, call, "options.budget"), short_name(call));
}

Ref<Policy> policy_of(const yoke_checkpoint_options &options, const char *call)
{
    const std::string_view policy = options.policy ? options.policy : "full";
    if (policy == "full") return Policy::full();
    if (policy == "matmul") return Policy::matmul();
    if (policy == "ops") return policy_of_ops(options, call);
    if (policy == "function") return policy_of_function(options, call);
    const char *nearest = nearest_word(policy, {"full", "matmul", "ops", "function", "budget"});
    fail(
        YOKE_E_VALUE,
        "%s: argument 'policy' is '%s'; it must be \"full\", \"matmul\", a list of ops, a function or a budget (in C \"ops\", \"function\" or \"budget\")%s",
        short_name(call), options.policy,
        nearest ? format("; did you mean '%s'?", nearest).c_str() : "");
}

Ref<Scope> open(const yoke_checkpoint_options *given, const char *call)
{
    if (!given) return Scope::open(Policy::full());
    const yoke_checkpoint_options options = read_struct(given, call, "options");
    if (options.policy && std::string_view(options.policy) == "budget")
        return open_budget(options, call);
    return Scope::open(policy_of(options, call), options.offload != 0);
}

Scope &need_scope(yoke_checkpoint *handle, const char *call)
{
    return need(handle, call, "scope", "give a scope that yoke_checkpoint_begin returned");
}

}  // namespace

yoke_status yoke_checkpoint_begin(const yoke_checkpoint_options *options, yoke_checkpoint **out)
{
    constexpr const char *call = "yoke_checkpoint_begin";
    return guard(call, [&] {
        yoke_checkpoint *&place = need_out(out, call);
        place = hand_out<yoke_checkpoint>(open(options, call));
    });
}

yoke_status yoke_checkpoint_end(yoke_checkpoint *scope)
{
    constexpr const char *call = "yoke_checkpoint_end";
    return guard(call, [&] { need_scope(scope, call).close(short_name(call)); });
}

yoke_checkpoint *yoke_checkpoint_retain(yoke_checkpoint *scope)
{
    constexpr const char *call = "yoke_checkpoint_retain";
    yoke_checkpoint *retained = capi::retain_handle(scope, call);
    if (retained) object_of(retained, call, "scope")->retain_handle();
    return retained;
}

void yoke_checkpoint_release(yoke_checkpoint *scope)
{
    constexpr const char *call = "yoke_checkpoint_release";
    if (Scope *object = take_back(scope, call)) {
        object->release_handle(short_name(call));
        object->release();
    }
}

yoke_checkpoint *yoke_checkpoint_swap(yoke_checkpoint *scope)
{
    constexpr const char *call = "yoke_checkpoint_swap";
    return guard_value(call, static_cast<yoke_checkpoint *>(nullptr), [&] {
        Scope *object = object_of(scope, call, "scope");
        if (object && !object->is_open())
            fail(YOKE_E_STATE, "%s: this scope is already closed; begin another scope",
                 short_name(call));
        return lend<yoke_checkpoint>(set_scope(object));
    });
}

yoke_checkpoint *yoke_checkpoint_current(void)
{
    return guard_value("yoke_checkpoint_current", static_cast<yoke_checkpoint *>(nullptr),
                       [] { return lend<yoke_checkpoint>(Scope::of_thread()); });
}

// ---- Memory budgets -------------------------------------------------------------------------------------------

yoke_status yoke_memory_budget_create(const char *amount, yoke_memory_budget **out)
{
    constexpr const char *call = "yoke_memory_budget_create";
    return guard(call, [&] {
        yoke_memory_budget *&place = need_out(out, call);
        const std::string_view text = &need(amount, call, "amount");
        place = hand_out<yoke_memory_budget>(MemoryBudget::make(text, short_name(call)));
    });
}

void yoke_memory_budget_release(yoke_memory_budget *budget)
{
    if (MemoryBudget *object = take_back(budget, "yoke_memory_budget_release")) object->release();
}

yoke_status yoke_memory_budget_report(yoke_memory_budget *budget,
                                      yoke_memory_budget_figures *figures)
{
    constexpr const char *call = "yoke_memory_budget_report";
    return guard(call, [&] {
        const BudgetReport report =
            need(budget, call, "budget", "give a budget that yoke_memory_budget_create returned")
                .report();
        yoke_memory_budget_figures ours{};
        ours.cuts = static_cast<int32_t>(report.cuts);
        ours.steps = report.steps;
        ours.forwards = report.forwards;
        ours.limit = report.limit;
        ours.plain_peak = report.plain_peak;
        for (int i = 0; i < 2; ++i) {
            ours.held_bytes[i] = report.held[i];
            ours.peak_bytes[i] = report.peak[i];
            ours.seconds[i] = report.seconds[i];
        }
        write_struct(figures, ours, call, "figures");
    });
}
