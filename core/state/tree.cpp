#include "core/state/tree.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <unordered_set>

namespace yoke {

const char *kind_text(StateKind kind)
{
    constexpr const char *kTexts[] = {"none",     "a bool",   "a whole number", "a float",
                                      "a string", "a tensor", "a list",         "a dict"};
    return kTexts[static_cast<size_t>(kind)];
}

// ---- Dicts ----------------------------------------------------------------------------------------------------

State *StateDict::find(const StateKey &key) const
{
    const auto place = places_.find(key);
    return place == places_.end() ? nullptr : entries_[place->second].value.get();
}

void StateDict::put(StateKey key, Ref<State> value)
{
    const auto [place, is_new] = places_.try_emplace(key, entries_.size());
    if (is_new)
        entries_.push_back({std::move(key), std::move(value)});
    else
        entries_[place->second].value = std::move(value);
}

// ---- Nodes ----------------------------------------------------------------------------------------------------

State::State(Value value) : value_(std::move(value)) {}

State::~State() = default;

Ref<State> State::make(Value value)
{
    return Ref<State>::adopt(new State(std::move(value)));
}

void State::assign(Value value)
{
    value_ = std::move(value);
}

namespace {

template <class Visit>
void for_each_child(const State &node, Visit visit)
{
    if (const auto *list = node.get_if<StateList>())
        for (const Ref<State> &item : list->items) visit(item);
    else if (const auto *dict = node.get_if<StateDict>())
        for (const StateDict::Entry &entry : dict->entries()) visit(entry.value);
}

}  // namespace

// Destroys this node. Destroys children without other owners in a loop, because a script may build a tree of any
// depth.
void State::destroy() noexcept
{
    std::vector<Ref<State>> last;
    const auto take = [&](State &node) {
        for_each_child(node, [&](const Ref<State> &child) { last.push_back(child); });
        node.value_ = std::monostate();
    };
    take(*this);
    while (!last.empty()) {
        const Ref<State> node = std::move(last.back());
        last.pop_back();
        if (node->use_count() == 1) take(*node);
    }
    delete this;
}

// Raises YOKE_E_VALUE if the child is or holds this node, or has too many levels for a tree.
void State::check_child(const State &child, const char *call) const
{
    if (child.kind() != StateKind::kList && child.kind() != StateKind::kDict) return;
    const auto is_container = [](const State &node) {
        return node.kind() == StateKind::kList || node.kind() == StateKind::kDict;
    };
    std::vector<const State *> level{&child}, below;
    std::unordered_set<const State *> seen;
    for (int depth = 1; !level.empty(); ++depth) {
        for (const State *node : level) {
            if (node == this)
                fail(YOKE_E_VALUE, "%s: a %s would contain itself; give a copy", call,
                     kind_text(kind()) + 2);
            for_each_child(*node, [&](const Ref<State> &each) {
                const State *node_below = each.get();
                if (is_container(*node_below) && seen.insert(node_below).second)
                    below.push_back(node_below);
            });
        }
        if (depth >= kDeepest)
            fail(YOKE_E_VALUE, "%s: lists and dicts are nested more than %d deep", call, kDeepest);
        level = std::exchange(below, {});
    }
}

void State::append(Ref<State> value, const char *call)
{
    auto *list = std::get_if<StateList>(&value_);
    if (!list)
        fail(YOKE_E_TYPE, "%s: the value is %s; only a list can be appended to", call,
             kind_text(kind()));
    check_child(*value, call);
    list->items.push_back(std::move(value));
}

void State::put(StateKey key, Ref<State> value, const char *call)
{
    auto *dict = std::get_if<StateDict>(&value_);
    if (!dict)
        fail(YOKE_E_TYPE, "%s: the value is %s; only a dict has keys", call, kind_text(kind()));
    if (const auto *text = std::get_if<std::string>(&key); text && !is_utf8(*text))
        fail(YOKE_E_VALUE, "%s: the key '%s' is not UTF-8", call, shown_name(*text).c_str());
    check_child(*value.get(), call);
    dict->put(std::move(key), std::move(value));
}

// ---- Paths ----------------------------------------------------------------------------------------------------

std::string path_part(const StateKey &key)
{
    if (const auto *number = std::get_if<int64_t>(&key)) return std::to_string(*number);
    std::string part;
    for (const char c : std::get<std::string>(key)) {
        if (c == '~')
            part += "~0";
        else if (c == '/')
            part += "~1";
        else
            part += c;
    }
    return part;
}

std::string path_below(const std::string &outer, std::string_view part)
{
    return outer.empty() ? std::string(part) : outer + "/" + std::string(part);
}

namespace {

// Takes the first part off a path and returns it, with "~1" and "~0" replaced. Raises YOKE_E_VALUE for another "~".
std::string take_part(std::string_view &path, const char *call)
{
    const std::string_view written = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), written.size() + 1));
    std::string part;
    for (size_t i = 0; i < written.size(); ++i) {
        if (written[i] != '~') {
            part += written[i];
            continue;
        }
        const char escaped = ++i < written.size() ? written[i] : '\0';
        if (escaped != '0' && escaped != '1')
            fail(YOKE_E_VALUE, "%s: '%s' in a path has a '~' that is neither \"~0\" nor \"~1\"",
                 call, shown_name(written).c_str());
        part += escaped == '0' ? '~' : '/';
    }
    return part;
}

}  // namespace

State *State::child(std::string_view part) const
{
    const auto number = parsed<int64_t>(part);
    if (const auto *list = get_if<StateList>()) {
        const bool is_there =
            number && *number >= 0 && static_cast<uint64_t>(*number) < list->items.size();
        return is_there ? list->items[static_cast<size_t>(*number)].get() : nullptr;
    }
    const auto *dict = get_if<StateDict>();
    if (!dict) return nullptr;
    State *found = number ? dict->find(*number) : nullptr;
    return found ? found : dict->find(std::string(part));
}

State *State::find(std::string_view path, const char *call)
{
    State *node = this;
    while (node && !path.empty()) node = node->child(take_part(path, call));
    return node;
}

void State::fail_missing(std::string_view path, const std::string &part, const char *call) const
{
    std::string known, nearest;
    if (const auto *list = get_if<StateList>()) {
        known = format("a list of %zu", list->items.size());
    } else if (const auto *dict = get_if<StateDict>()) {
        std::vector<std::string> keys;
        for (const StateDict::Entry &entry : dict->entries()) keys.push_back(path_part(entry.key));
        const std::vector<const char *> words = [&] {
            std::vector<const char *> all;
            for (const std::string &key : keys) all.push_back(key.c_str());
            return all;
        }();
        known = format("a dict of %zu", keys.size());
        if (const char *word = nearest_word(part, words))
            nearest = format("; did you mean '%s'?", word);
    } else {
        known = kind_text(kind());
    }
    fail(YOKE_E_VALUE, "%s: there is no value at '%s': '%s' is not in %s%s", call,
         shown_name(path).c_str(), shown_name(part).c_str(), known.c_str(), nearest.c_str());
}

State &State::at(std::string_view path, const char *call)
{
    State *node = this;
    for (std::string_view rest = path; !rest.empty();) {
        const std::string part = take_part(rest, call);
        State *below = node->child(part);
        if (!below) node->fail_missing(path, part, call);
        node = below;
    }
    return *node;
}

void State::set_child(const std::string &part, Ref<State> value, const char *call)
{
    const auto number = parsed<int64_t>(part);
    auto *list = std::get_if<StateList>(&value_);
    if (!list) {
        const auto *dict = get_if<StateDict>();
        const bool is_text = !number || (dict && !dict->find(*number) && dict->find(part));
        return put(is_text ? StateKey(part) : StateKey(*number), std::move(value), call);
    }
    const size_t count = list->items.size();
    if (!number || *number < 0 || static_cast<uint64_t>(*number) > count)
        fail(YOKE_E_VALUE, "%s: '%s' is not a place in a list of %zu; the next place is %zu", call,
             shown_name(part).c_str(), count, count);
    if (static_cast<uint64_t>(*number) == count) return append(std::move(value), call);
    check_child(*value, call);
    list->items[static_cast<size_t>(*number)] = std::move(value);
}

void State::set(std::string_view path, Ref<State> value, const char *call)
{
    if (path.empty()) {
        for_each_child(*value, [&](const Ref<State> &each) { check_child(*each, call); });
        value_ = value->value_;
        return;
    }
    State *node = this;
    std::string part = take_part(path, call);
    if (kind() == StateKind::kNone) value_ = StateDict();
    while (!path.empty()) {
        if (!node->child(part)) node->set_child(part, make(StateDict()), call);
        node = node->child(part);
        part = take_part(path, call);
    }
    node->set_child(part, std::move(value), call);
}

// ---- Texts ----------------------------------------------------------------------------------------------------

namespace {

// Returns the length of a character by its first byte; 0 for a byte that cannot begin a character.
size_t utf8_length(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first < 0xe0) return 2;
    if (first >= 0xe0 && first < 0xf0) return 3;
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

}  // namespace

bool is_utf8(std::string_view text)
{
    for (size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const size_t length = utf8_length(first);
        if (length == 0 || i + length > text.size()) return false;
        for (size_t j = 1; j < length; ++j)
            if (!is_continuation(text[i + j])) return false;
        const auto second = length > 1 ? static_cast<unsigned char>(text[i + 1]) : 0;
        // No overlong forms, no surrogates, no code points above U+10FFFF.
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
            return false;
        i += length;
    }
    return true;
}

}  // namespace yoke
