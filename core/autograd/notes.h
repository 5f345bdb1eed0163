// notes.h: what a program has asked about a node of the tape: hooks on the gradients of its results, results that
// retain their gradient, and the script line that recorded the node.
//
// Few nodes have notes; a node without notes costs a comparison of a pointer. Hooks belong to a result of a node. A
// recorded change in place gives the tensor another node, so hooks from before see the gradient of the former value.
// A retained gradient follows the tensor instead.
#pragma once

#include "core/autograd/node.h"
#include "core/base/script.h"

#include <atomic>
#include <mutex>
#include <span>
#include <vector>

namespace yoke {

// Mode of a thread that looks for defects in gradients. The tape notes the script line of each op. With kChecks, a
// walk raises at the first gradient with a NaN.
enum Anomaly : int32_t { kNoAnomaly, kNotesLines, kChecks };

// Function of the program that sees a gradient.
class GradientHook : public RefCounted {
public:
    // Returns the gradient that takes the place of `gradient`; null if the gradient stays. No lock is held.
    virtual Tensor run(const Tensor &gradient) = 0;
};

// Registration of a hook, for its removal. A node and a handle of the program hold the registration.
class HookEntry final : public RefCounted {
public:
    explicit HookEntry(Ref<GradientHook> hook) : hook_(std::move(hook)) {}
    // Returns the hook; null after remove().
    Ref<GradientHook> hook() const;
    // Returns whether remove() was called. Unlike hook(), takes no reference, whose end may run the program's drop.
    bool is_removed() const;
    // Removes the hook. A call under way ends first in its own thread.
    void remove() noexcept;

private:
    mutable std::mutex mutex_;
    Ref<GradientHook> hook_;
};

// Guard around a call of the program's code within a walk. The code finds no checkpoint scope and no values of the
// walk in force. The end restores the thread's modes, whatever the code has opened and closed meanwhile.
class ProgramTurn {
public:
    ProgramTurn();
    ~ProgramTurn();
    ProgramTurn(const ProgramTurn &) = delete;
    ProgramTurn &operator=(const ProgramTurn &) = delete;

private:
    ThreadState &state_;
    const int32_t grad_disabled_, anomaly_;
    Autocast *const autocast_;
    Scope *const scope_, *const scope_aside_;
    Replays *const replays_;
    const OpDef *const composing_;
};

class NodeNotes {
public:
    NodeNotes() = default;
    NodeNotes(const NodeNotes &) = delete;
    NodeNotes &operator=(const NodeNotes &) = delete;

    void add_hook(uint32_t result, Ref<HookEntry> hook);
    // Keeps the gradients of the result from now on; `grad` is the sum of earlier walks.
    void retain(uint32_t result, Tensor grad = nullptr);
    bool retains(uint32_t result) const;
    // Returns and replaces the retained gradient.
    Tensor grad(uint32_t result) const;
    void set_grad(uint32_t result, Tensor grad);
    // Ends the retaining. Returns whether the result retained its gradient, and gives the gradient to `grad`.
    bool stop_retaining(uint32_t result, Tensor &grad);
    // Returns whether gradients must have the dtype of the result, and go through pass().
    bool is_watching() const;
    // Removes all hooks, because no walk can pass the node any more. A hook may keep the hooked tensor alive.
    void drop_hooks() noexcept;
    // Runs the hooks on the gradients of the node's results, then retains the gradients.
    void pass(std::span<Tensor> gradients, const Node &node);

    // Line of the script that recorded the node; null if the thread noted none.
    void set_line(const ScriptLine *line) noexcept { line_.store(line, std::memory_order_relaxed); }
    const ScriptLine *line() const noexcept { return line_.load(std::memory_order_relaxed); }

private:
    friend class Node;
    struct Watched {
        uint32_t result;
        bool retains = false;
        Tensor grad = nullptr;
        std::vector<Ref<HookEntry>> hooks = {};
    };
    Watched &at(uint32_t result);
    const Watched *find(uint32_t result) const;
    std::vector<Ref<HookEntry>> hooks_on(uint32_t result);
    void keep(uint32_t result, const yoke_tensor &gradient);

    mutable std::mutex mutex_;
    std::vector<Watched> all_;
    std::atomic<const ScriptLine *> line_{nullptr};
    NodeNotes *next_dead_ = nullptr;  // after the node's death
};

// Returns whether the node has hooks, or results that retain their gradient.
inline bool is_watched(const Node &node)
{
    const NodeNotes *notes = node.notes();
    return notes && notes->is_watching();
}

// Notes the present script line at a new node.
void note_line_now(Node &node);
// Does so if the thread's mode asks for lines.
inline void note_line(Node &node)
{
    if (thread_state().anomaly) [[unlikely]]
        note_line_now(node);
}

// Adds a hook on the gradient of x. Raises YOKE_E_STATE if x does not require grad.
void add_hook(const yoke_tensor &x, Ref<HookEntry> hook, const char *call);
// Has x, a result of an op, keep its gradient. No effect on a leaf. Raises YOKE_E_STATE if x does not require grad.
void retain_grad(const yoke_tensor &x, const char *call);
bool retains_grad(const yoke_tensor &x);
// Return and replace the retained gradient of x. The caller knows that x retains a gradient.
Tensor retained_grad(const yoke_tensor &x);
void set_retained_grad(const yoke_tensor &x, Tensor grad);
// Hands the retained gradient of x on to result `index` of `node`, the new history of x; null: no history.
void move_retained(const yoke_tensor &x, Node *node, uint32_t index);

}  // namespace yoke
