#include "yoke/state.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/state/tree.h"

using namespace yoke;
using namespace yoke::capi;

static_assert(static_cast<int32_t>(StateKind::kNone) == YOKE_STATE_NONE &&
              static_cast<int32_t>(StateKind::kBool) == YOKE_STATE_BOOL &&
              static_cast<int32_t>(StateKind::kInt) == YOKE_STATE_INT &&
              static_cast<int32_t>(StateKind::kFloat) == YOKE_STATE_FLOAT &&
              static_cast<int32_t>(StateKind::kString) == YOKE_STATE_STRING &&
              static_cast<int32_t>(StateKind::kTensor) == YOKE_STATE_TENSOR &&
              static_cast<int32_t>(StateKind::kList) == YOKE_STATE_LIST &&
              static_cast<int32_t>(StateKind::kDict) == YOKE_STATE_DICT);

namespace {

constexpr const char *kGiveState = "give a state that yoke_state_create returned";

State &need_state(yoke_state *handle, const char *call, const char *argument = "state")
{
    return need(handle, call, argument, kGiveState);
}

std::string_view need_path(const char *path, const char *call)
{
    if (!path) fail_null(call, "path");
    return path;
}

std::string text_of(const char *text, int64_t length, const char *call, const char *argument)
{
    const char *begin = &need(text, call, argument);
    if (length < -1)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'length' is %lld; it must be a number of bytes, or -1 for text that ends at the first NUL",
            short_name(call), static_cast<long long>(length));
    return length < 0 ? std::string(begin) : std::string(begin, static_cast<size_t>(length));
}

// Sets a value without children at a path; "" means the state itself.
void set_leaf(yoke_state *state, const char *path, const char *call, State::Value value)
{
    State &root = need_state(state, call);
    const std::string_view place = need_path(path, call);
    if (place.empty()) return root.assign(std::move(value));
    root.set(place, State::make(std::move(value)), short_name(call));
}

yoke_status set_value(yoke_state *state, const char *path, const char *call, State::Value value)
{
    return guard(call, [&] { set_leaf(state, path, call, std::move(value)); });
}

// Returns the value at a path. Raises YOKE_E_TYPE for a value of another kind.
template <class T>
const T &need_value(yoke_state *state, const char *path, const char *call)
{
    const State &found = need_state(state, call).at(need_path(path, call), short_name(call));
    const T *value = found.get_if<T>();
    if (!value)
        fail(YOKE_E_TYPE, "%s: the value at '%s' is %s; it must be %s", short_name(call), path,
             kind_text(found.kind()), kind_text(State::make(T{})->kind()));
    return *value;
}

}  // namespace

// ---- Nodes ----------------------------------------------------------------------------------------------------

yoke_status yoke_state_create(yoke_state **out)
{
    constexpr const char *call = "yoke_state_create";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        place = hand_out<yoke_state>(State::make());
    });
}

yoke_state *yoke_state_retain(yoke_state *state)
{
    return capi::retain_handle(state, "yoke_state_retain");
}

void yoke_state_release(yoke_state *state)
{
    capi::release_handle(state, "yoke_state_release");
}

int32_t yoke_state_kind(yoke_state *state, const char *path)
{
    constexpr const char *call = "yoke_state_kind";
    return guard_value(call, int32_t{-1}, [&] {
        const State *found = need_state(state, call).find(need_path(path, call), short_name(call));
        return found ? static_cast<int32_t>(found->kind()) : -1;
    });
}

int64_t yoke_state_count(yoke_state *state)
{
    constexpr const char *call = "yoke_state_count";
    return guard_value(call, int64_t{-1}, [&] {
        const State &node = need_state(state, call);
        if (const auto *list = node.get_if<StateList>())
            return static_cast<int64_t>(list->items.size());
        const auto *dict = node.get_if<StateDict>();
        return dict ? static_cast<int64_t>(dict->entries().size()) : 0;
    });
}

int32_t yoke_state_is_tuple(yoke_state *state)
{
    constexpr const char *call = "yoke_state_is_tuple";
    return guard_value(call, int32_t{0}, [&] {
        const auto *list = need_state(state, call).get_if<StateList>();
        return int32_t{list && list->is_tuple};
    });
}

// ---- Values by path -------------------------------------------------------------------------------------------

yoke_status yoke_state_set_none(yoke_state *state, const char *path)
{
    return set_value(state, path, "yoke_state_set_none", {});
}

yoke_status yoke_state_set_bool(yoke_state *state, const char *path, int32_t value)
{
    return set_value(state, path, "yoke_state_set_bool", value != 0);
}

yoke_status yoke_state_set_int(yoke_state *state, const char *path, int64_t value)
{
    return set_value(state, path, "yoke_state_set_int", value);
}

yoke_status yoke_state_set_float(yoke_state *state, const char *path, double value)
{
    return set_value(state, path, "yoke_state_set_float", value);
}

yoke_status yoke_state_set_string(yoke_state *state, const char *path, const char *value,
                                  int64_t length)
{
    constexpr const char *call = "yoke_state_set_string";
    return guard(call, [&] {
        (void)need_state(state, call);
        std::string text = text_of(value, length, call, "value");
        if (!is_utf8(text))
            fail(YOKE_E_VALUE,
                 "%s: argument 'value' is not UTF-8; store bytes in a tensor of dtype uint8",
                 short_name(call));
        set_leaf(state, path, call, std::move(text));
    });
}

yoke_status yoke_state_set_tensor(yoke_state *state, const char *path, yoke_tensor *value)
{
    constexpr const char *call = "yoke_state_set_tensor";
    return guard(call, [&] {
        (void)need_state(state, call);
        set_leaf(state, path, call, Tensor::share(&need(value, call, "value")));
    });
}

yoke_status yoke_state_set_list(yoke_state *state, const char *path, int32_t is_tuple)
{
    return set_value(state, path, "yoke_state_set_list", StateList{{}, is_tuple != 0});
}

yoke_status yoke_state_set_dict(yoke_state *state, const char *path)
{
    return set_value(state, path, "yoke_state_set_dict", StateDict());
}

yoke_status yoke_state_set(yoke_state *state, const char *path, yoke_state *value)
{
    constexpr const char *call = "yoke_state_set";
    return guard(call, [&] {
        State &root = need_state(state, call);
        root.set(need_path(path, call), need_ref(value, call, "value", kGiveState),
                 short_name(call));
    });
}

yoke_status yoke_state_get_bool(yoke_state *state, const char *path, int32_t *value)
{
    constexpr const char *call = "yoke_state_get_bool";
    return guard(call, [&] { need(value, call, "value") = need_value<bool>(state, path, call); });
}

yoke_status yoke_state_get_int(yoke_state *state, const char *path, int64_t *value)
{
    constexpr const char *call = "yoke_state_get_int";
    return guard(call,
                 [&] { need(value, call, "value") = need_value<int64_t>(state, path, call); });
}

yoke_status yoke_state_get_float(yoke_state *state, const char *path, double *value)
{
    constexpr const char *call = "yoke_state_get_float";
    return guard(call, [&] {
        double &place = need(value, call, "value");
        const State &found = need_state(state, call).at(need_path(path, call), short_name(call));
        const auto *whole = found.get_if<int64_t>();
        place = whole ? static_cast<double>(*whole) : need_value<double>(state, path, call);
    });
}

yoke_status yoke_state_get_string(yoke_state *state, const char *path, const char **value,
                                  int64_t *length)
{
    constexpr const char *call = "yoke_state_get_string";
    return guard(call, [&] {
        const char *&place = need(value, call, "value");
        place = nullptr;
        const auto &text = need_value<std::string>(state, path, call);
        place = text.c_str();
        if (length) *length = static_cast<int64_t>(text.size());
    });
}

yoke_status yoke_state_get_tensor(yoke_state *state, const char *path, yoke_tensor **out)
{
    constexpr const char *call = "yoke_state_get_tensor";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(Tensor(need_value<Tensor>(state, path, call)));
    });
}

yoke_status yoke_state_get(yoke_state *state, const char *path, yoke_state **out)
{
    constexpr const char *call = "yoke_state_get";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        State &found = need_state(state, call).at(need_path(path, call), short_name(call));
        place = hand_out<yoke_state>(Ref<State>::share(&found));
    });
}

// ---- Entries --------------------------------------------------------------------------------------------------

yoke_status yoke_state_append(yoke_state *list, yoke_state *value)
{
    constexpr const char *call = "yoke_state_append";
    return guard(call, [&] {
        State &node = need_state(list, call, "list");
        node.append(need_ref(value, call, "value", kGiveState), short_name(call));
    });
}

yoke_status yoke_state_put(yoke_state *dict, const yoke_state_key *key, yoke_state *value)
{
    constexpr const char *call = "yoke_state_put";
    return guard(call, [&] {
        State &node = need_state(dict, call, "dict");
        const yoke_state_key given = read_struct(key, call, "key");
        StateKey name = given.number;
        if (!given.is_int) name = text_of(given.text, given.length, call, "key.text");
        node.put(std::move(name), need_ref(value, call, "value", kGiveState), short_name(call));
    });
}

namespace {

yoke_state_key key_of(const StateKey &key)
{
    yoke_state_key shown{};
    shown.is_int = std::holds_alternative<int64_t>(key);
    if (shown.is_int) {
        shown.number = std::get<int64_t>(key);
    } else {
        shown.text = std::get<std::string>(key).c_str();
        shown.length = static_cast<int64_t>(std::get<std::string>(key).size());
    }
    return shown;
}

}  // namespace

yoke_status yoke_state_entry(yoke_state *state, int64_t index, yoke_state_key *key,
                             yoke_state **out)
{
    constexpr const char *call = "yoke_state_entry";
    return guard(call, [&] {
        if (out) *out = nullptr;
        const State &node = need_state(state, call);
        const auto *list = node.get_if<StateList>();
        const auto *dict = node.get_if<StateDict>();
        if (!list && !dict)
            fail(YOKE_E_TYPE, "%s: argument 'state' is %s; it must be a list or a dict",
                 short_name(call), kind_text(node.kind()));
        const size_t count = list ? list->items.size() : dict->entries().size();
        if (index < 0 || static_cast<uint64_t>(index) >= count)
            fail(YOKE_E_INDEX,
                 "%s: argument 'index' is %lld; there are %zu entries, counted from 0",
                 short_name(call), static_cast<long long>(index), count);
        const auto at = static_cast<size_t>(index);
        if (key)
            write_struct(key, list ? key_of(index) : key_of(dict->entries()[at].key), call, "key");
        if (out) *out = hand_out<yoke_state>(list ? list->items[at] : dict->entries()[at].value);
    });
}
