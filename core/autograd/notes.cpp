#include "core/autograd/notes.h"

#include "core/autograd/backward.h"
#include "core/base/lent.h"
#include "core/memory/relief.h"

#include <algorithm>
#include <utility>

namespace yoke {

// ---- Hooks ---------------------------------------------------------------------------------------------------

Ref<GradientHook> HookEntry::hook() const
{
    const std::lock_guard lock(mutex_);
    return hook_;
}

bool HookEntry::is_removed() const
{
    const std::lock_guard lock(mutex_);
    return !hook_.present();
}

void HookEntry::remove() noexcept
{
    Ref<GradientHook> removed;  // released without the lock: its drop may call any function
    const std::lock_guard lock(mutex_);
    std::swap(removed, hook_);
}

ProgramTurn::ProgramTurn()
    : state_(thread_state()),
      grad_disabled_(state_.grad_disabled),
      anomaly_(state_.anomaly),
      autocast_(std::exchange(state_.autocast, nullptr)),
      scope_(std::exchange(state_.scope, nullptr)),
      scope_aside_(state_.scope_aside),
      replays_(std::exchange(state_.replays, nullptr)),
      composing_(std::exchange(state_.composing, nullptr))
{
}

ProgramTurn::~ProgramTurn()
{
    Autocast *const left_region = std::exchange(state_.autocast, autocast_);
    Scope *const left_scope = std::exchange(state_.scope, scope_);
    state_.grad_disabled = grad_disabled_;
    state_.anomaly = anomaly_;
    state_.scope_aside = scope_aside_;
    state_.replays = replays_;
    state_.composing = composing_;
    if (left_region) lent.drop_autocast(left_region);
    if (left_scope) lent.drop_scope(left_scope);
}

// ---- Notes of a node -----------------------------------------------------------------------------------------

NodeNotes::Watched &NodeNotes::at(uint32_t result)
{
    const auto found = std::ranges::find(all_, result, &Watched::result);
    return found != all_.end() ? *found : all_.emplace_back(Watched{result});
}

const NodeNotes::Watched *NodeNotes::find(uint32_t result) const
{
    const auto found = std::ranges::find(all_, result, &Watched::result);
    return found != all_.end() ? &*found : nullptr;
}

void NodeNotes::add_hook(uint32_t result, Ref<HookEntry> hook)
{
    const std::lock_guard lock(mutex_);
    at(result).hooks.push_back(std::move(hook));
}

void NodeNotes::retain(uint32_t result, Tensor grad)
{
    const std::lock_guard lock(mutex_);
    Watched &watched = at(result);
    if (!std::exchange(watched.retains, true)) std::swap(watched.grad, grad);
}

bool NodeNotes::retains(uint32_t result) const
{
    const std::lock_guard lock(mutex_);
    const Watched *watched = find(result);
    return watched && watched->retains;
}

Tensor NodeNotes::grad(uint32_t result) const
{
    const std::lock_guard lock(mutex_);
    const Watched *watched = find(result);
    return watched ? watched->grad : nullptr;
}

void NodeNotes::set_grad(uint32_t result, Tensor grad)
{
    const std::lock_guard lock(mutex_);
    std::swap(at(result).grad, grad);
}

bool NodeNotes::stop_retaining(uint32_t result, Tensor &grad)
{
    const std::lock_guard lock(mutex_);
    Watched &watched = at(result);
    grad = std::exchange(watched.grad, nullptr);
    return std::exchange(watched.retains, false);
}

bool NodeNotes::is_watching() const
{
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(all_, [](const Watched &each) {
        return each.retains || std::ranges::any_of(each.hooks, [](const Ref<HookEntry> &hook) {
                   return !hook->is_removed();
               });
    });
}

// Returns the hooks in their order, and forgets those that were removed.
std::vector<Ref<HookEntry>> NodeNotes::hooks_on(uint32_t result)
{
    const std::lock_guard lock(mutex_);
    for (Watched &each : all_)
        if (each.result == result) {
            std::erase_if(each.hooks,
                          [](const Ref<HookEntry> &hook) { return hook->is_removed(); });
            return each.hooks;
        }
    return {};
}

void NodeNotes::drop_hooks() noexcept
{
    for (;;) {
        std::vector<Ref<HookEntry>>
            dropped;  // ended without the lock: a drop may call any function
        {
            const std::lock_guard lock(mutex_);
            for (Watched &each : all_)
                if (dropped.empty()) std::swap(dropped, each.hooks);
        }
        if (dropped.empty()) return;
        for (const Ref<HookEntry> &each : dropped) each->remove();
    }
}

// Adds the gradient to the retained gradient. The copy is made without the lock: if memory runs out, the allocator
// calls functions of the program, which may read the retained gradient.
void NodeNotes::keep(uint32_t result, const yoke_tensor &gradient)
{
    Tensor sum;  // the former sum is released without the lock
    if (!grad(result).present()) sum = tape_ops.clone(gradient);
    const std::lock_guard lock(mutex_);
    Watched &watched = at(result);
    const NoRelief no_relief;
    if (watched.grad.present()) sum = tape_ops.add(*watched.grad, gradient);
    if (!sum.present()) sum = tape_ops.clone(gradient);
    std::swap(watched.grad, sum);
}

static Tensor run_hook(GradientHook &hook, const Tensor &gradient)
{
    const ProgramTurn turn;
    return hook.run(gradient);
}

static void check_replacement(const yoke_tensor &made, const yoke_tensor &gradient,
                              const Node &node)
{
    if (made.dtype == gradient.dtype && made.device == gradient.device &&
        same(made.shape(), gradient.shape()))
        return;
    fail(
        made.dtype != gradient.dtype ? YOKE_E_TYPE : YOKE_E_VALUE,
        "backward: a hook on the gradient of a result of %s returned %s, but the gradient is %s; return a tensor of the same shape, dtype and device, or none",
        node.name(), describe(made).c_str(), describe(gradient).c_str());
}

void NodeNotes::pass(std::span<Tensor> gradients, const Node &node)
{
    for (uint32_t result = 0; result < gradients.size(); ++result) {
        Tensor &gradient = gradients[result];
        if (!gradient.present()) continue;
        for (const Ref<HookEntry> &each : hooks_on(result)) {
            const Ref<GradientHook> hook = each->hook();
            if (!hook.present()) continue;  // removed by a hook before it
            Tensor made = run_hook(*hook, gradient);
            if (!made.present() || made.get() == gradient.get()) continue;
            check_replacement(*made, *gradient, node);
            // The program may keep its tensor, and a leaf changes its own gradient in place.
            gradient = own_gradient(std::move(made));
        }
        if (retains(result)) keep(result, *gradient);
    }
}

// ---- Of a node, and of a tensor ------------------------------------------------------------------------------

void note_line_now(Node &node)
{
    if (const ScriptLine *line = script_line()) node.make_notes().set_line(line);
}

// Returns the node and result that get all gradients of x.
static Result watched_result(const yoke_tensor &x, const char *call)
{
    if (!x.requires_grad())
        fail(
            YOKE_E_STATE,
            "%s: the tensor %s does not require grad, so it gets no gradient; call requires_grad_() first",
            call, describe(x).c_str());
    return result_of(x);
}

void add_hook(const yoke_tensor &x, Ref<HookEntry> hook, const char *call)
{
    const Result result = watched_result(x, call);
    result.node->make_notes().add_hook(result.index, std::move(hook));
}

void retain_grad(const yoke_tensor &x, const char *call)
{
    const Result result = watched_result(x, call);
    if (!result.node->is_leaf()) result.node->make_notes().retain(result.index);
}

bool retains_grad(const yoke_tensor &x)
{
    const Result result = result_of(x);
    const NodeNotes *notes = result.node ? result.node->notes() : nullptr;
    return notes && notes->retains(result.index);
}

Tensor retained_grad(const yoke_tensor &x)
{
    const Result result = result_of(x);
    return result.node->notes()->grad(result.index);
}

void set_retained_grad(const yoke_tensor &x, Tensor grad)
{
    const Result result = result_of(x);
    result.node->notes()->set_grad(result.index, std::move(grad));
}

void move_retained(const yoke_tensor &x, Node *node, uint32_t index)
{
    if (!retains_grad(x)) return;
    const Result before = result_of(x);
    Tensor grad;
    if (before.node->notes()->stop_retaining(before.index, grad) && node)
        node->make_notes().retain(index, std::move(grad));
}

}  // namespace yoke
