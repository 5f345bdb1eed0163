#include "core/state/fields.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/tree_text.h"

namespace yoke {

std::string shown(const State &node)
{
    if (const auto *text = node.get_if<std::string>()) return "'" + shown_name(*text) + "'";
    if (const auto *tensor = node.get_if<Tensor>())
        return format("a %s tensor of shape %s", name((*tensor)->dtype),
                      to_string((*tensor)->shape()).c_str());
    if (const auto *whole = node.get_if<int64_t>()) return std::to_string(*whole);
    if (const auto *number = node.get_if<double>()) return shown_float(*number);
    if (const auto *truth = node.get_if<bool>()) return *truth ? "true" : "false";
    return kind_text(node.kind());
}

void refuse_kind(const State &node, const std::string &place, const char *wanted)
{
    fail(YOKE_E_TYPE, "%s: %s is %s; it must be %s, as in the result of state_dict()", kLoadCall,
         place.c_str(), shown(node).c_str(), wanted);
}

namespace {

const StateDict &dict_of(const State &node, const std::string &place)
{
    const auto *dict = node.get_if<StateDict>();
    if (!dict) refuse_kind(node, place, "a dict");
    return *dict;
}

}  // namespace

Fields::Fields(const State &node, std::string place, std::initializer_list<std::string_view> keys,
               const char *hint)
    : dict_(dict_of(node, place)), place_(std::move(place))
{
    for (const std::string_view key : keys)
        if (!find(key))
            fail(
                YOKE_E_VALUE,
                "%s: '%s' is missing in %s, which must have %s, as in the result of state_dict()%s",
                kLoadCall, std::string(key).c_str(), place_.c_str(), joined(keys).c_str(), hint);
}

const State &Fields::at(std::string_view key) const
{
    const State *found = find(key);
    if (!found)
        fail(YOKE_E_VALUE, "%s: '%s' is missing in %s", kLoadCall, std::string(key).c_str(),
             place_.c_str());
    return *found;
}

std::string Fields::place_of(std::string_view key) const
{
    const std::string quoted = "'" + std::string(key) + "'";
    return place_.starts_with("argument") ? quoted : quoted + " of " + place_;
}

double number_of(const State &node, const std::string &place)
{
    if (const auto *whole = node.get_if<int64_t>()) return static_cast<double>(*whole);
    const auto *number = node.get_if<double>();
    if (!number) refuse_kind(node, place, "a number");
    return *number;
}

const Tensor &tensor_of(const State &node, const std::string &place)
{
    const auto *tensor = node.get_if<Tensor>();
    if (!tensor) refuse_kind(node, place, "a tensor");
    return *tensor;
}

double Fields::number(std::string_view key) const
{
    return number_of(at(key), place_of(key));
}

bool Fields::truth(std::string_view key) const
{
    const auto *truth = at(key).get_if<bool>();
    if (!truth) refuse_kind(at(key), place_of(key), "a bool");
    return *truth;
}

int64_t Fields::whole(std::string_view key, int64_t least) const
{
    const auto *whole = at(key).get_if<int64_t>();
    if (!whole) refuse_kind(at(key), place_of(key), "a whole number");
    if (*whole < least)
        fail(YOKE_E_VALUE, "%s: %s is %lld; it must be a whole number of at least %lld", kLoadCall,
             place_of(key).c_str(), static_cast<long long>(*whole), static_cast<long long>(least));
    return *whole;
}

const StateList &Fields::list(std::string_view key) const
{
    static const StateList none;
    const auto *dict = at(key).get_if<StateDict>();
    if (dict && dict->entries().empty()) return none;
    const auto *list = at(key).get_if<StateList>();
    if (!list) refuse_kind(at(key), place_of(key), "a list");
    return *list;
}

}  // namespace yoke
