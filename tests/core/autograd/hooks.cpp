// Hooks on nodes of no op: order, changes of the list while it runs, what a shortcut of the walk leaves them, the end.
#include "core/autograd/notes.h"
#include "tests/core/autograd/probe.h"
#include "tests/core/expect_error.h"

namespace yoke {

using test::edge_to;
using test::expect_error;
using test::go_back;
using test::Log;
using test::Made;
using test::made_by;
using test::number;
using test::value_of;

namespace {

class ProbeHook final : public GradientHook {
public:
    using Action = std::function<Tensor(const Tensor &)>;
    ProbeHook(Log &log, std::string name, Action action)
        : log_(log), name_(std::move(name)), action_(std::move(action))
    {
    }
    ~ProbeHook() override { log_.push_back("drop " + name_); }
    Tensor run(const Tensor &gradient) override
    {
        log_.push_back(name_);
        return action_ ? action_(gradient) : nullptr;
    }

private:
    Log &log_;
    const std::string name_;
    const Action action_;
};

Ref<HookEntry> hook_on(const Tensor &x, Log &log, const char *name, ProbeHook::Action action = {})
{
    auto entry = Ref<HookEntry>::adopt(
        new HookEntry(Ref<ProbeHook>::adopt(new ProbeHook(log, name, std::move(action)))));
    add_hook(*x, entry, "a test");
    return entry;
}

}  // namespace

TEST(Hooks, HooksRunBeforeTheirNodeAndEndWithIt)
{
    Log log;
    Tensor x = number(1, true);
    {
        Made a = made_by("a", {edge_to(x)}, log);
        hook_on(a.tensor, log, "on a");
        hook_on(x, log, "on x");
        go_back(a.tensor, true);
        EXPECT_EQ(log, (Log{"on a", "a", "on x"}));
        log.clear();
    }
    EXPECT_EQ(log, (Log{"free a", "drop on a"}));
    x = nullptr;
    EXPECT_EQ(log.back(), "drop on x");
}

TEST(Hooks, AHookThatIsRemovedWhileItRunsEndsAfterItsCall)
{
    Log log;
    const Tensor x = number(1, true);
    Ref<HookEntry> entry;
    entry = hook_on(x, log, "one", [&](const Tensor &) -> Tensor {
        entry->remove();
        log.push_back("removed");
        return nullptr;
    });
    hook_on(x, log, "two");
    go_back(x, true);
    go_back(x, true);
    EXPECT_EQ(log, (Log{"one", "removed", "drop one", "two", "two"}));
}

TEST(Hooks, OfSeveralResultsEachHasItsOwnHooksAndAMissingGradientHasNone)
{
    Log log;
    const Tensor x = number(1, true);
    Made pair = made_by("pair", {edge_to(x)}, log, 3, 2);
    pair.node->action = [](std::span<Tensor> in, std::span<Tensor> out) { out[0] = in[2]; };
    hook_on(pair.tensor, log, "on 2", [](const Tensor &) { return number(5); });
    const Tensor first = number(0);
    set_node(*first, Ref<Node>::share(pair.node), 0);
    hook_on(first, log, "on 0");
    go_back(pair.tensor);
    EXPECT_EQ(log, (Log{"on 2", "pair", "release pair"}));
    EXPECT_EQ(value_of(grad_of(*x, "a test")), 5);
}

TEST(Hooks, ACastWithAHookHandsOnNoWiderGradient)
{
    Log log;
    const Tensor x = number(1, true);
    Made cast = made_by("cast", {edge_to(x)}, log),
         use = made_by("use", {edge_to(cast.tensor)}, log);
    cast.node->is_cast = true;
    EXPECT_FALSE(is_watched(*cast.node));
    const Ref<HookEntry> entry = hook_on(cast.tensor, log, "on cast");
    EXPECT_TRUE(is_watched(*cast.node));
    entry->remove();
    EXPECT_FALSE(is_watched(*cast.node));
    retain_grad(*cast.tensor, "a test");
    EXPECT_TRUE(is_watched(*cast.node));
}

TEST(Hooks, AHookThatRaisesEndsTheWalkAndTheThreadsModesAreTheCallers)
{
    Log log;
    const Tensor x = number(1, true);
    hook_on(x, log, "fails", [](const Tensor &) -> Tensor {
        set_grad_enabled(true);
        fail(YOKE_E_STATE, "the hook does not want to");
    });
    const int64_t before = live_tensor_count();
    expect_error(YOKE_E_STATE, {"the hook does not want to"}, [&] { go_back(x, true); });
    EXPECT_TRUE(grad_enabled());
    EXPECT_FALSE(grad_of(*x, "a test").present());
    EXPECT_EQ(live_tensor_count(), before);
}

TEST(Hooks, ANodeHasNoMoreBytesForNotes)
{
    struct Bare : RefCounted {
        uint64_t sequence;
        void *next_dead;
    };
    EXPECT_EQ(sizeof(Node), sizeof(Bare));
}

}  // namespace yoke
