// How the text of a tree is read: core/state/tree_text.h.
#include "core/base/error.h"
#include "core/state/safetensors.h"
#include "core/state/tree_text.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <bit>
#include <charconv>
#include <limits>
#include <unordered_set>

namespace yoke {

#ifdef YOKE_WITHOUT_JSON

Ref<State> read_tree(std::string_view, const std::function<Tensor(std::string_view)> &,
                     const char *path)
{
    fail(YOKE_E_UNSUPPORTED, "%s: this build reads no states: it was made without nlohmann-json",
         path);
}

#else

namespace {

class Reader final : public nlohmann::json_sax<nlohmann::json> {
public:
    Reader(const std::function<Tensor(std::string_view)> &tensor, const char *path)
        : tensor_(tensor), path_(path)
    {
    }

    Ref<State> root;

    bool null() override { return take(State::make()); }
    bool boolean(bool value) override { return take(State::make(value)); }
    bool number_integer(int64_t value) override { return take(State::make(value)); }
    bool number_unsigned(uint64_t value) override
    {
        if (value > INT64_MAX) refuse("a whole number beyond 64 bits");
        return take(State::make(static_cast<int64_t>(value)));
    }
    bool number_float(double value, const std::string &) override
    {
        return take(State::make(value));
    }
    bool string(std::string &value) override { return take(State::make(std::move(value))); }
    bool binary(nlohmann::json::binary_t &) override { refuse("binary"); }
    bool start_object(size_t) override { return open(State::make(StateDict())); }
    bool start_array(size_t) override { return open(State::make(StateList())); }
    bool end_array() override { return close(); }
    bool end_object() override { return close(); }
    bool key(std::string &name) override;
    bool parse_error(size_t position, const std::string &,
                     const nlohmann::detail::exception &error) override
    {
        fail(YOKE_E_CHECKPOINT, "%s: its tree is no JSON at byte %zu: %s", path_, position,
             shown_name(error.what()).c_str());
    }

private:
    // A list, a dict, or an object of one key with "$" that stands for `value`.
    struct Open {
        Ref<State> value;
        std::string key, meaning;
    };

    [[noreturn]] void refuse(const std::string &what) const
    {
        fail(YOKE_E_CHECKPOINT,
             "%s: its tree has %s, which this version cannot read; read it with a newer one", path_,
             what.c_str());
    }
    bool open(Ref<State> value)
    {
        // A floor of the tree takes at most three of the text.
        if (open_.size() > 3 * State::kDeepest) refuse("too many lists and dicts in each other");
        open_.push_back({std::move(value), {}, {}});
        return true;
    }
    bool close()
    {
        const Ref<State> value = std::move(open_.back().value);
        if (!value.present()) refuse("a '" + open_.back().meaning + "' without a value");
        open_.pop_back();
        return take(value);
    }
    bool take(Ref<State> value);
    Ref<State> meant(const std::string &meaning, Ref<State> value) const;
    Ref<State> float_of(const std::string &text) const;
    Ref<State> dict_of(const StateList &pairs) const;

    const std::function<Tensor(std::string_view)> &tensor_;
    const char *const path_;
    std::vector<Open> open_;
};

bool Reader::key(std::string &name)
{
    Open &top = open_.back();
    const bool is_first = top.meaning.empty() && top.value->get_if<StateDict>()->entries().empty();
    if (!top.meaning.empty()) refuse("'" + shown_name(name) + "' beside '" + top.meaning + "'");
    if (name.starts_with('$')) {
        if (!is_first) refuse("'" + shown_name(name) + "' in a dict");
        top.meaning = shown_name(name);
        top.value = {};
    } else if (top.value->get_if<StateDict>()->find(name)) {
        refuse("the key '" + shown_name(name) + "' twice");
    }
    top.key = name;
    return true;
}

bool Reader::take(Ref<State> value)
{
    if (open_.empty()) {
        root = std::move(value);
        return true;
    }
    Open &top = open_.back();
    if (!top.meaning.empty())
        top.value = meant(top.meaning, std::move(value));
    else if (top.value->kind() == StateKind::kList)
        top.value->append(std::move(value), path_);
    else
        top.value->put(top.key, std::move(value), path_);
    return true;
}

Ref<State> Reader::meant(const std::string &meaning, Ref<State> value) const
{
    const auto *text = value->get_if<std::string>();
    const auto *list = value->get_if<StateList>();
    if (meaning == "$tensor" && text) {
        Tensor found = tensor_(*text);
        if (!found.present())
            fail(YOKE_E_CHECKPOINT,
                 "%s: its tree has a tensor '%s', which is not among its tensors", path_,
                 shown_name(*text).c_str());
        return State::make(std::move(found));
    }
    if (meaning == "$float" && text) return float_of(*text);
    if (meaning == "$tuple" && list) return State::make(StateList{list->items, true});
    if (meaning == "$dict" && list) return dict_of(*list);
    refuse("'" + meaning + "' of " + kind_text(value->kind()));
}

Ref<State> Reader::float_of(const std::string &text) const
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (text == "inf") return State::make(kInfinity);
    if (text == "-inf") return State::make(-kInfinity);
    if (text == "nan") return State::make(std::bit_cast<double>(uint64_t{0x7ff8} << 48));
    uint64_t bits = 0;
    const char *end = text.data() + text.size();
    const bool is_bits = text.starts_with("0x") && text.size() == 18 &&
                         std::from_chars(text.data() + 2, end, bits, 16).ptr == end;
    if (!is_bits) refuse("the float '" + shown_name(text) + "'");
    return State::make(std::bit_cast<double>(bits));
}

Ref<State> Reader::dict_of(const StateList &pairs) const
{
    Ref<State> made = State::make(StateDict());
    for (const Ref<State> &each : pairs.items) {
        const auto *pair = each->get_if<StateList>();
        if (!pair || pair->items.size() != 2) refuse("a '$dict' of what are no pairs");
        const State &key = *pair->items[0];
        const auto *number = key.get_if<int64_t>();
        const auto *text = key.get_if<std::string>();
        if (!number && !text) refuse(std::string("a key that is ") + kind_text(key.kind()));
        const StateKey found = number ? StateKey(*number) : StateKey(*text);
        if (made->get_if<StateDict>()->find(found))
            refuse("the key '" + shown_name(path_part(found)) + "' twice");
        made->put(found, pair->items[1], path_);
    }
    return made;
}

}  // namespace

Ref<State> read_tree(std::string_view json, const std::function<Tensor(std::string_view)> &tensor,
                     const char *path)
{
    Reader reader(tensor, path);
    try {
        nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
    } catch (const Error &error) {  // what the tree itself refuses is the file's fault
        if (error.status() != YOKE_E_VALUE) throw;
        throw Error(YOKE_E_CHECKPOINT, error.what());
    }
    return reader.root;
}

#endif

}  // namespace yoke
