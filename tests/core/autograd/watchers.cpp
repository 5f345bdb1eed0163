// Watchers of leaves: each takes a leaf's gradient once a walk, as soon as its last part arrives, and learns how the
// walk ended.
#include "tests/core/autograd/probe.h"
#include "tests/core/expect_error.h"

#include <algorithm>
#include <map>

namespace yoke::test {
namespace {

// Watcher that adds arriving gradients to the leaves, and notes every call.
class Notes final : public LeafWatcher {
public:
    explicit Notes(Log &all) : log(all) {}
    void watch(const Tensor &leaf, const std::string &name, const std::shared_ptr<Notes> &self)
    {
        auto *node = static_cast<LeafNode *>(node_of(*leaf));
        names_[node] = name;
        node->set_watcher(self);
    }
    void begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest) override
    {
        oldest_use = oldest;
        std::vector<std::string> names;
        for (const Ref<LeafNode> &each : reached) names.push_back(" " + names_.at(each.get()));
        std::ranges::sort(names);
        std::string text = "begin";
        for (const std::string &name : names) text += name;
        note(text, "begin");
    }
    void arrive(LeafNode &leaf, Tensor gradient) override
    {
        const std::string &name = names_.at(&leaf);
        note(name + (gradient.present() ? format(" %g", value_of(gradient)) : " nothing"), name);
        leaf.add(std::move(gradient));
    }
    void end() override { note("end", "end"); }
    void fail() noexcept override { log.emplace_back("fail"); }
    void refuse() noexcept override { log.emplace_back("refuse"); }

    Log &log;
    std::string fails_at;
    uint64_t oldest_use = 0;

private:
    void note(const std::string &text, const std::string &place)
    {
        log.push_back(text);
        if (place == fails_at) yoke::fail(YOKE_E_STATE, "it fails at %s", place.c_str());
    }

    std::map<const LeafNode *, std::string> names_;
};

struct Watched {
    Log log;
    std::shared_ptr<Notes> notes = std::make_shared<Notes>(log);
    Tensor leaf(const std::string &name, double value)
    {
        Tensor made = number(value, true);
        notes->watch(made, name, notes);
        return made;
    }
};

double grad_value(const Tensor &leaf)
{
    return value_of(grad_of(*leaf, "a test"));
}

TEST(Watchers, TakeEachGradientAsSoonAsItsLastPartHasCome)
{
    Watched w;
    const Tensor a = w.leaf("a", 2), b = w.leaf("b", 3), c = w.leaf("c", 5);
    Made first = made_by("first", {edge_to(a), edge_to(b)}, w.log);
    Made second = made_by("second", {edge_to(first.tensor), edge_to(c)}, w.log);
    Made third = made_by("third", {edge_to(second.tensor), edge_to(b)}, w.log);
    go_back(third.tensor, true);
    EXPECT_EQ(w.log, (Log{"begin a b c", "third", "second", "c 1", "first", "a 1", "b 2", "end"}));
    EXPECT_EQ(grad_value(b), 2);
    go_back(third.tensor);
    EXPECT_EQ(grad_value(b), 4);
}

TEST(Watchers, HearOfTheirLeavesThatAWalkLeadsToAndOfNoOthers)
{
    Watched w, other;
    const Tensor used = w.leaf("used", 2), unused = w.leaf("unused", 3);
    const Tensor others = other.leaf("others", 1), own = number(1, true);
    Made root = made_by("root", {edge_to(used), edge_to(others), edge_to(own)}, w.log);
    go_back(root.tensor, true);
    EXPECT_EQ(w.log, (Log{"begin used", "root", "used 1", "end"}));
    EXPECT_EQ(other.log, (Log{"begin others", "others 1", "end"}));
    EXPECT_EQ(grad_value(own), 1);
    yoke_tensor *roots[] = {root.tensor.get()}, *inputs[] = {used.get()};
    gradients(roots, {}, inputs, false);
    EXPECT_EQ(w.log.size(), 6u) << "root and its release; no leaf takes part in what grad returns";
}

TEST(Watchers, AreToldAtTheEndOfLeavesThatAMissingGradientCutOff)
{
    Watched w;
    const Tensor a = w.leaf("a", 1), b = w.leaf("b", 1), c = w.leaf("c", 1);
    Made deep = made_by("deep", {edge_to(a), edge_to(b)}, w.log);
    Made root = made_by("root", {edge_to(deep.tensor), edge_to(b), edge_to(c)}, w.log);
    root.node->action = [](std::span<Tensor> in, std::span<Tensor> out) { out[1] = in[0]; };
    go_back(root.tensor);
    EXPECT_EQ(w.log,
              (Log{"begin a b c", "root", "release root", "b 1", "c nothing", "a nothing", "end"}));
    EXPECT_FALSE(grad_of(*a, "a test").present());
}

TEST(Watchers, TakeALeafThatIsARootOnce)
{
    Watched w;
    const Tensor x = w.leaf("x", 1), alone = w.leaf("alone", 1);
    Made a = made_by("a", {edge_to(x), edge_to(x)}, w.log);
    yoke_tensor *roots[] = {x.get(), a.tensor.get(), alone.get()};
    backward(roots, {}, false);
    EXPECT_EQ(w.log, (Log{"begin alone x", "a", "release a", "x 3", "alone 1", "end"}));
}

TEST(Watchers, AreToldThatAWalkFailedAndTheNextOneWorks)
{
    for (const char *place : {"begin", "x", "end", "root"}) {
        const std::map<std::string, std::string> last = {
            {"begin", "begin x"}, {"x", "fail"}, {"end", "end"}, {"root", "fail"}};
        Watched w, other;
        const Tensor x = w.leaf("x", 1), before = other.leaf("before", 1);
        Made root = made_by("root", {edge_to(before), edge_to(x)}, w.log);
        w.notes->fails_at = place;
        if (place == std::string("root"))
            root.node->action = [](auto, auto) { yoke::fail(YOKE_E_STATE, "it fails at root"); };
        expect_error(YOKE_E_STATE, {"it fails at", place}, [&] { go_back(root.tensor, true); });
        EXPECT_EQ(w.log.back(), last.at(place))
            << place << ": a begin or an end that raises is told no more";
        const auto told = [&](const char *how) { return std::ranges::count(other.log, how); };
        EXPECT_EQ(told("fail") + told("end") + told("refuse"), 1)
            << place << ": each of them is told once how it ended";
        w.notes->fails_at = "";
        root.node->action = {};
        go_back(root.tensor);
        EXPECT_EQ(w.log.back(), "end") << place;
    }
}

TEST(Watchers, AreToldOfAWalkThatCannotBegin)
{
    Watched w, other;
    const Tensor x = w.leaf("x", 1), others = other.leaf("others", 1);
    Made root = made_by("root", {edge_to(x)}, w.log);
    const int64_t shape[] = {2};
    const Tensor wrong = ops::full(shape, 1.0, YOKE_F64);
    yoke_tensor *roots[] = {root.tensor.get()}, *given[] = {wrong.get()};
    expect_error(YOKE_E_VALUE, {"'gradient'", "both must have the same shape"},
                 [&] { backward(roots, given, false); });
    EXPECT_EQ(w.log, (Log{"refuse"}));
    w.log.clear();
    refuse_backward(roots, "no such argument");
    EXPECT_EQ(w.log, (Log{"refuse"}));
    EXPECT_EQ(other.log, Log());
    Made second = made_by("second", {edge_to(x), edge_to(others)}, w.log);
    w.log.clear();
    w.notes->fails_at = "begin";
    expect_error(YOKE_E_STATE, {"it fails at"}, [&] { go_back(second.tensor, true); });
    other.notes->fails_at = "begin";
    w.notes->fails_at = "";
    expect_error(YOKE_E_STATE, {"it fails at"}, [&] { go_back(second.tensor, true); });
    EXPECT_EQ(w.log, (Log{"begin x", "begin x", "fail"}));
    EXPECT_EQ(other.log, (Log{"refuse", "begin others"})) << "x is reached first";
}

TEST(Watchers, HearOfTheOldestOpThatUsesOneOfTheirLeaves)
{
    Watched w, other;
    const Tensor a = w.leaf("a", 1), b = w.leaf("b", 1), x = other.leaf("x", 1);
    Made first = made_by("first", {edge_to(x)}, w.log);
    Made old = made_by("old", {edge_to(first.tensor), edge_to(b)}, w.log);
    Made young = made_by("young", {edge_to(b), edge_to(a)}, w.log);
    for (const auto &[one, two] : {std::pair(&old, &young), std::pair(&young, &old)}) {
        Made root = made_by("root", {edge_to(one->tensor), edge_to(two->tensor)}, w.log);
        go_back(root.tensor, true);
        EXPECT_EQ(w.notes->oldest_use, old.node->sequence);
        EXPECT_EQ(other.notes->oldest_use, first.node->sequence);
    }
    go_back(young.tensor);
    EXPECT_EQ(w.notes->oldest_use, young.node->sequence);
    go_back(a);
    EXPECT_EQ(w.notes->oldest_use, UINT64_MAX) << "no op uses it";
}

TEST(Watchers, MayBeTakenAway)
{
    Watched w;
    const Tensor x = w.leaf("x", 1);
    Made root = made_by("root", {edge_to(x)}, w.log);
    static_cast<LeafNode *>(node_of(*x))->set_watcher(nullptr);
    go_back(root.tensor);
    EXPECT_EQ(w.log, (Log{"root", "release root"}));
    EXPECT_EQ(grad_value(x), 1);
}

}  // namespace
}  // namespace yoke::test
