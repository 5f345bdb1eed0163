// Reader of a tree's text; core/state/tree_text.h has the format.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/tree_text.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <unordered_set>

namespace yoke {

void check_json_text(std::string_view json, const char *what, size_t before, const char *path)
{
    constexpr int kMostDigits = 1000;
    bool is_text = false;
    int digits = 0;
    for (size_t i = 0; i < json.size(); ++i) {
        const char c = json[i];
        digits = !is_text && c >= '0' && c <= '9' ? digits + 1 : 0;
        if (c == '\0' || digits > kMostDigits)
            fail(YOKE_E_CHECKPOINT, "%s: %s is not JSON at byte %zu: it has %s", path, what,
                 before + i + 1, c ? "a number of more than 1000 digits" : "a NUL");
        if (c == '"') is_text = !is_text;
        if (c == '\\' && is_text && i + 1 < json.size() && json[i + 1]) ++i;
    }
}

#ifdef YOKE_WITHOUT_JSON

Ref<State> read_tree(std::string_view, const std::function<Tensor(std::string_view)> &,
                     const char *path)
{
    fail(YOKE_E_UNSUPPORTED,
         "%s: this build cannot read states, because it was built without nlohmann-json", path);
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
    bool start_object(size_t) override { return open(StateDict()); }
    bool start_array(size_t) override { return open(StateList()); }
    bool end_array() override { return close(); }
    bool end_object() override { return close(); }
    bool key(std::string &name) override;
    bool parse_error(size_t position, const std::string &,
                     const nlohmann::detail::exception &error) override
    {
        fail(YOKE_E_CHECKPOINT, "%s: the tree is not JSON at byte %zu: %s", path_, position,
             shown_name(error.what()).c_str());
    }

private:
    // Open list, dict, or object with a single "$" key that stands for `meant`.
    struct Open {
        State::Value value;
        std::string key, meaning;
        Ref<State> meant;
    };

    [[noreturn]] void refuse(const std::string &what) const
    {
        fail(YOKE_E_CHECKPOINT,
             "%s: the tree has %s, which this version cannot read; use a newer version", path_,
             what.c_str());
    }
    bool open(State::Value value)
    {
        // A level of the tree takes at most three levels of the text; a tensor or float at the bottom takes a single
        // level.
        if (open_.size() > 3 * State::kDeepest) refuse("too many nested lists and dicts");
        open_.push_back({std::move(value), {}, {}, {}});
        return true;
    }
    bool close()
    {
        Open top = std::move(open_.back());
        open_.pop_back();
        if (top.meaning.empty()) return take(State::make(std::move(top.value)));
        return take(std::move(top.meant));
    }
    bool take(Ref<State> value);
    Ref<State> meaning_of(const std::string &meaning, Ref<State> value) const;
    Ref<State> float_of(const std::string &text) const;
    Ref<State> dict_of(const StateList &pairs) const;

    const std::function<Tensor(std::string_view)> &tensor_;
    const char *const path_;
    std::vector<Open> open_;
};

bool Reader::key(std::string &name)
{
    Open &top = open_.back();
    const StateDict &dict = std::get<StateDict>(top.value);
    const bool is_first = top.meaning.empty() && dict.entries().empty();
    if (!top.meaning.empty()) refuse("'" + shown_name(name) + "' beside '" + top.meaning + "'");
    if (name.starts_with('$')) {
        if (!is_first) refuse("'" + shown_name(name) + "' in a dict");
        top.meaning = shown_name(name);
    } else if (dict.find(name)) {
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
        top.meant = meaning_of(top.meaning, std::move(value));
    else if (auto *list = std::get_if<StateList>(&top.value))
        list->items.push_back(std::move(value));
    else
        std::get<StateDict>(top.value).put(top.key, std::move(value));
    return true;
}

Ref<State> Reader::meaning_of(const std::string &meaning, Ref<State> value) const
{
    const auto *text = value->get_if<std::string>();
    const auto *list = value->get_if<StateList>();
    if (meaning == "$tensor" && text) {
        Tensor found = tensor_(*text);
        if (!found.present())
            fail(YOKE_E_CHECKPOINT,
                 "%s: the tree has a tensor '%s', which is not among the file's tensors", path_,
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
    StateDict made;
    for (const Ref<State> &each : pairs.items) {
        const auto *pair = each->get_if<StateList>();
        if (!pair || pair->items.size() != 2) refuse("a '$dict' without pairs");
        const State &key = *pair->items[0];
        const auto *number = key.get_if<int64_t>();
        const auto *text = key.get_if<std::string>();
        if (!number && !text) refuse(std::string("a key that is ") + kind_text(key.kind()));
        const StateKey found = number ? StateKey(*number) : StateKey(*text);
        if (made.find(found)) refuse("the key '" + shown_name(path_part(found)) + "' twice");
        made.put(found, pair->items[1]);
    }
    return State::make(std::move(made));
}

// Returns how many lists and dicts lie in each other. The parser takes only so many levels, so the recursion ends.
int levels(const State &node)
{
    int most = 0;
    if (const auto *list = node.get_if<StateList>())
        for (const Ref<State> &item : list->items) most = std::max(most, levels(*item));
    else if (const auto *dict = node.get_if<StateDict>())
        for (const StateDict::Entry &entry : dict->entries())
            most = std::max(most, levels(*entry.value));
    else
        return 0;
    return most + 1;
}

}  // namespace

Ref<State> read_tree(std::string_view json, const std::function<Tensor(std::string_view)> &tensor,
                     const char *path)
{
    check_json_text(json, "its tree", 0, path);
    Reader reader(tensor, path);
    nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
    if (levels(*reader.root) > State::kDeepest)
        fail(YOKE_E_CHECKPOINT, "%s: the tree has lists and dicts nested more than %d deep", path,
             State::kDeepest);
    return reader.root;
}

#endif

}  // namespace yoke
