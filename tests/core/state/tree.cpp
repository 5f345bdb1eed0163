// Trees of plain values and tensors, by path and as text: core/state/tree.cpp, tree_text.cpp, tree_read.cpp.
#include "core/select/select.h"
#include "core/state/tree_text.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace yoke {
namespace {

using test::expect_error;

constexpr const char *kCall = "save";
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Ref<State> dict()
{
    return State::make(StateDict());
}

Tensor tensor(std::vector<int64_t> shape)
{
    return make_tensor(open_device("cpu"), YOKE_F32, shape, kCall);
}

Ref<State> read_tree_text(std::string_view json,
                          const std::vector<std::pair<std::string, Tensor>> &known = {})
{
    return read_tree(
        json,
        [&](std::string_view name) {
            for (const auto &[each, found] : known)
                if (each == name) return found;
            return Tensor();
        },
        "a.safetensors");
}

bool same(const State &a, const State &b)
{
    if (a.kind() != b.kind()) return false;
    if (const auto *list = a.get_if<StateList>()) {
        const auto *other = b.get_if<StateList>();
        bool alike = list->is_tuple == other->is_tuple && list->items.size() == other->items.size();
        for (size_t i = 0; alike && i < list->items.size(); ++i)
            alike = same(*list->items[i], *other->items[i]);
        return alike;
    }
    if (const auto *all = a.get_if<StateDict>()) {
        const auto &others = b.get_if<StateDict>()->entries();
        bool alike = all->entries().size() == others.size();
        for (size_t i = 0; alike && i < others.size(); ++i)
            alike = all->entries()[i].key == others[i].key &&
                    same(*all->entries()[i].value, *others[i].value);
        return alike;
    }
    if (const auto *number = a.get_if<double>())
        return std::bit_cast<uint64_t>(*number) == std::bit_cast<uint64_t>(*b.get_if<double>());
    if (const auto *x = a.get_if<Tensor>()) return x->get() == b.get_if<Tensor>()->get();
    if (const auto *text = a.get_if<std::string>()) return *text == *b.get_if<std::string>();
    if (const auto *whole = a.get_if<int64_t>()) return *whole == *b.get_if<int64_t>();
    const auto *truth = a.get_if<bool>();
    return !truth || *truth == *b.get_if<bool>();
}

// ---- Paths ----------------------------------------------------------------------------------------------------

TEST(Tree, APathNamesANode)
{
    const Ref<State> root = dict();
    root->set("net/layers/weight", State::make(int64_t{1}), kCall);
    root->set("list", State::make(StateList()), kCall);
    root->set("list/0", State::make(true), kCall);
    root->set("list/1", State::make(2.5), kCall);
    root->set("list/0", State::make(std::string("first")), kCall);
    root->set("a~1b~0c", State::make(int64_t{7}), kCall);
    EXPECT_EQ(*root->at("net/layers/weight", kCall).get_if<int64_t>(), 1);
    EXPECT_EQ(*root->at("list/0", kCall).get_if<std::string>(), "first");
    EXPECT_EQ(root->get_if<StateDict>()->entries()[2].key, StateKey(std::string("a/b~c")));
    EXPECT_EQ(path_part(std::string("a/b~c")), "a~1b~0c");
    EXPECT_EQ(&root->at("", kCall), root.get());
    EXPECT_EQ(root->find("list/2", kCall), nullptr);
    EXPECT_EQ(root->find("net/layers/weight/more", kCall), nullptr);
    root->set("", State::make(int64_t{3}), kCall);
    EXPECT_EQ(root->kind(), StateKind::kInt);
}

TEST(Tree, ANewNodeBecomesADict)
{
    const Ref<State> root = State::make();
    root->set("net/weight", State::make(int64_t{1}), kCall);
    EXPECT_EQ(*root->at("net/weight", kCall).get_if<int64_t>(), 1);
    root->set("none", State::make(), kCall);
    expect_error(YOKE_E_TYPE, {"none", "keys"}, [&] { root->set("none/x", State::make(), kCall); });
}

TEST(Tree, DigitsAreAWholeNumberWhereTheDictHasIt)
{
    const Ref<State> root = dict();
    root->put(std::string("1"), State::make(std::string("text")), kCall);
    EXPECT_EQ(*root->at("1", kCall).get_if<std::string>(), "text");
    root->set("1", State::make(std::string("still")), kCall);
    EXPECT_EQ(root->get_if<StateDict>()->entries().size(), 1u);
    root->put(int64_t{1}, State::make(std::string("number")), kCall);
    EXPECT_EQ(*root->at("1", kCall).get_if<std::string>(), "number");
    root->set("2", State::make(), kCall);
    EXPECT_EQ(root->get_if<StateDict>()->entries()[2].key, StateKey(int64_t{2}));
}

TEST(Tree, WhatCannotBeIsRefused)
{
    const Ref<State> root = dict();
    root->set("list", State::make(StateList()), kCall);
    root->set("weight", State::make(int64_t{1}), kCall);
    const auto set = [&](const char *path) { root->set(path, State::make(), kCall); };
    expect_error(YOKE_E_VALUE, {"'1'", "list of 0"}, [&] { set("list/1"); });
    expect_error(YOKE_E_VALUE, {"'x'", "list of 0"}, [&] { set("list/x"); });
    expect_error(YOKE_E_VALUE, {"'a~2'"}, [&] { set("a~2"); });
    expect_error(YOKE_E_VALUE, {"'a~'"}, [&] { set("a~"); });
    expect_error(YOKE_E_TYPE, {"whole number", "keys"}, [&] { set("weight/x"); });
    expect_error(YOKE_E_VALUE, {"UTF-8"}, [&] { set("\xff"); });
    expect_error(YOKE_E_VALUE, {"'wieght'", "'weight'"}, [&] { root->at("wieght", kCall); });
    expect_error(YOKE_E_TYPE, {"dict", "list"}, [&] { root->append(State::make(), kCall); });
}

TEST(Tree, NoNodeComesToLieWithinItself)
{
    const Ref<State> outer = dict(), inner = dict();
    outer->set("inner", inner, kCall);
    expect_error(YOKE_E_VALUE, {"contain itself"}, [&] { inner->set("outer", outer, kCall); });
    expect_error(YOKE_E_VALUE, {"contain itself"}, [&] { inner->set("a/b", outer, kCall); });
    expect_error(YOKE_E_VALUE, {"contain itself"}, [&] { outer->set("self", outer, kCall); });
    expect_error(YOKE_E_VALUE, {"contain itself"}, [&] { inner->set("", outer, kCall); });
}

TEST(Tree, DepthHasAnEnd)
{
    Ref<State> node = dict();
    node->set("leaf", State::make(), kCall);
    for (int i = 1; i < State::kDeepest; ++i) {
        const Ref<State> outer = dict();
        outer->set("x", node, kCall);
        node = outer;
    }
    EXPECT_NO_THROW(tree_text(*node, kCall));
    const Ref<State> last = dict();
    expect_error(YOKE_E_VALUE, {"64"}, [&] { last->set("x", node, kCall); });
    // From the root down the depth is unknown. Such a state cannot be saved, but must be released at any depth.
    const Ref<State> root = dict();
    Ref<State> at = root;
    for (int i = 0; i < 100'000; ++i) {
        const Ref<State> below = dict();
        at->set("x", below, kCall);
        at = below;
    }
    at = nullptr;
    expect_error(YOKE_E_VALUE, {"64"}, [&] { tree_text(*root, kCall); });
}

// ---- Text -----------------------------------------------------------------------------------------------------

TEST(TreeText, AllComesBackAsItWas)
{
    const Ref<State> root = dict();
    const auto put = [&](const char *key, State::Value value) {
        root->put(std::string(key), State::make(std::move(value)), kCall);
    };
    put("none", {});
    put("true", true);
    put("false", false);
    put("three", int64_t{3});
    put("three.0", 3.0);
    put("most", INT64_MAX);
    put("least", INT64_MIN);
    put("-0.0", -0.0);
    put("tenth", 0.1);
    put("tiny", 5e-324);
    put("huge", 1.7976931348623157e308);
    put("even", 1e22);
    put("inf", kInfinity);
    put("-inf", -kInfinity);
    put("nan", std::bit_cast<double>(uint64_t{0x7ff8} << 48));
    put("another nan", std::bit_cast<double>(0xfff8'0000'0000'1234));
    put("text", std::string("\"\\\n\0\x7f ü 𝄞", 14));
    put("", std::string());
    put("list", StateList());
    put("tuple", StateList{{State::make(int64_t{1}), State::make(StateList{{}, true})}, true});
    put("dict", StateDict());
    root->put(std::string("$float"), State::make(std::string("inf")), kCall);
    root->put(int64_t{-1}, State::make(int64_t{1}), kCall);
    root->put(std::string("-1"), State::make(int64_t{2}), kCall);
    const TreeText text = tree_text(*root, kCall);
    EXPECT_FALSE(text.is_flat);
    const Ref<State> back = read_tree_text(text.json);
    EXPECT_TRUE(same(*root, *back)) << text.json;
}

TEST(TreeText, ATensorInTwoPlacesIsOne)
{
    const Tensor x = tensor({2, 3}), y = tensor({2, 3}), none = tensor({0}), other = tensor({0});
    const Ref<State> root = dict();
    root->set("net/x", State::make(x), kCall);
    root->set("net/alias", State::make(alias(*x)), kCall);
    root->set("y", State::make(y), kCall);
    root->set("none", State::make(none), kCall);
    root->set("other", State::make(other), kCall);
    const int64_t strides[] = {1, 3}, shape[] = {3, 2};
    root->set("turned", State::make(make_view(*x, shape, strides, 0)), kCall);
    const TreeText text = tree_text(*root, kCall);
    ASSERT_EQ(text.tensors.size(), 5u) << text.json;
    EXPECT_EQ(text.tensors[0].first, "net.x");
    const Ref<State> back = read_tree_text(text.json, text.tensors);
    EXPECT_EQ(back->at("net/x", kCall).get_if<Tensor>()->get(),
              back->at("net/alias", kCall).get_if<Tensor>()->get());
}

TEST(TreeText, NamesAreToldApart)
{
    const Ref<State> root = dict();
    root->put(std::string("a.b"), State::make(tensor({1})), kCall);
    root->set("a/b", State::make(tensor({1})), kCall);
    const TreeText text = tree_text(*root, kCall);
    ASSERT_EQ(text.tensors.size(), 2u);
    EXPECT_EQ(text.tensors[0].first, "a.b");
    EXPECT_EQ(text.tensors[1].first, "a.b~2");
    EXPECT_EQ(tree_text(*State::make(tensor({1})), kCall).tensors[0].first, "tensor");
}

TEST(TreeText, ADictOfTensorsNeedsNoTree)
{
    const Tensor x = tensor({1});
    const Ref<State> root = dict();
    root->put(std::string("0.weight"), State::make(x), kCall);
    EXPECT_TRUE(tree_text(*root, kCall).is_flat);
    root->put(std::string("tied"), State::make(x), kCall);
    EXPECT_FALSE(tree_text(*root, kCall).is_flat);
    EXPECT_TRUE(tree_text(*dict(), kCall).is_flat);
    const Ref<State> numbered = dict();
    numbered->put(int64_t{0}, State::make(x), kCall);
    EXPECT_FALSE(tree_text(*numbered, kCall).is_flat);
}

TEST(TreeText, WhatCannotBeWrittenIsRefusedByItsPath)
{
    const auto refused = [](const char *path, State::Value value, yoke_status status,
                            std::initializer_list<const char *> parts) {
        const Ref<State> root = dict();
        root->set(path, State::make(std::move(value)), kCall);
        expect_error(status, parts, [&] { tree_text(*root, kCall); });
    };
    refused("a/b", std::string("\xff"), YOKE_E_VALUE, {"'a.b'", "UTF-8"});
    refused("__metadata__", tensor({1}), YOKE_E_VALUE, {"__metadata__"});
    // Twice 64 references to the node below are 2^64 nodes to write.
    Ref<State> node = State::make(std::string(1 << 20, 'x'));
    for (int i = 0; i < 60; ++i) node = State::make(StateList{{node, node}, false});
    expect_error(YOKE_E_VALUE, {"100000000"}, [&] { tree_text(*node, kCall); });
}

TEST(TreeText, BrokenTextsAreRefused)
{
    const auto refused = [](const std::string &json, std::initializer_list<const char *> parts) {
        expect_error(YOKE_E_CHECKPOINT, parts, [&] { read_tree_text(json); });
        expect_error(YOKE_E_CHECKPOINT, {"a.safetensors"}, [&] { read_tree_text(json); });
    };
    refused("", {"JSON"});
    refused("{", {"JSON"});
    refused("[1,]", {"JSON"});
    refused("1 2", {"JSON"});
    refused("\"\xff\"", {"JSON"});
    refused("1e999", {"JSON"});
    refused("9223372036854775808", {"64 bits"});
    refused(R"({"a":1,"a":2})", {"'a' twice"});
    refused(R"({"$tensor":"x"})", {"'x'", "not among"});
    refused(R"({"$tensor":1})", {"$tensor"});
    refused(R"({"$float":"one"})", {"'one'"});
    refused(R"({"$float":"0x12"})", {"'0x12'"});
    refused(R"({"$complex":[1,2]})", {"$complex", "newer"});
    refused(R"({"$tuple":{}})", {"$tuple"});
    refused(R"({"$tuple":[],"more":1})", {"'more'", "$tuple"});
    refused(R"({"more":1,"$tuple":[]})", {"$tuple"});
    refused(R"({"$dict":[[1,2,3]]})", {"$dict"});
    refused(R"({"$dict":[[1.5,2]]})", {"key"});
    refused(R"({"$dict":[[1,2],[1,3]]})", {"'1' twice"});
    refused(std::string(100'000, '['), {"nested lists and dicts"});
    refused(std::string(100, '[') + std::string(100, ']'), {"64"});
    std::string tuples;
    for (int i = 0; i < 100; ++i) tuples += R"({"$tuple":[)";
    refused(tuples, {""});
}

TEST(TreeText, Utf8IsKnown)
{
    for (const char *text : {"", "a", "ü", "€", "𝄞", "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf"})
        EXPECT_TRUE(is_utf8(text)) << text;
    for (const char *text :
         {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "a\xff"})
        EXPECT_FALSE(is_utf8(text)) << text;
}

}  // namespace
}  // namespace yoke
