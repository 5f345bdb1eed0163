#include "core/state/fit.h"

#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/ops.h"
#include "core/state/fields.h"

#include <algorithm>

namespace yoke {

namespace {

// Comparison of both trees: pairs of tensors that fit, and a line for each misfit.
class Fit {
public:
    Fit(const State &from, const State &into)
    {
        const auto *given = from.get_if<StateDict>(), *wanted = into.get_if<StateDict>();
        if (given && wanted)
            compare_dicts(*given, *wanted, "");
        else
            compare(from, into, "");
    }

    struct Pair {
        Tensor from, into;
    };
    std::vector<Pair> pairs;
    std::vector<std::string> wrong;

private:
    void tell(const std::string &path, const std::string &what)
    {
        wrong.push_back("'" + shown_name(path) + "' " + what);
    }
    void compare(const State &from, const State &into, const std::string &path);
    void compare_tensors(const State &from, const Tensor &into, const std::string &path);
    void compare_dicts(const StateDict &from, const StateDict &into, const std::string &path);
    void compare_lists(const StateList &from, const StateList &into, const std::string &path);
    void tell_of_others(const StateDict &from, const StateDict &into, const std::string &path);
};

void Fit::compare_tensors(const State &from, const Tensor &into, const std::string &path)
{
    const auto *given = from.get_if<Tensor>();
    const bool fits = given && (*given)->dtype == into->dtype &&
                      std::ranges::equal((*given)->shape(), into->shape());
    const int expanded = expanded_axis(*into);
    if (!fits)
        tell(path,
             "is " + shown(from) + " in the state, but goes into " + shown(*State::make(into)));
    else if (expanded >= 0)
        tell(
            path,
            format(
                "goes into an expanded tensor, which has the %lld elements of axis %d at one place of memory; clone() the tensor first",
                static_cast<long long>(into->shape_[expanded]), expanded));
    else
        pairs.push_back({*given, into});
}

void Fit::tell_of_others(const StateDict &from, const StateDict &into, const std::string &path)
{
    for (const StateDict::Entry &entry : from.entries())
        if (!into.find(entry.key))
            tell(path_below(path, path_part(entry.key)), "is in the state, but has no target");
}

void Fit::compare_dicts(const StateDict &from, const StateDict &into, const std::string &path)
{
    for (const StateDict::Entry &entry : into.entries()) {
        const std::string below = path_below(path, path_part(entry.key));
        if (const State *given = from.find(entry.key))
            compare(*given, *entry.value, below);
        else
            tell(below, "is missing in the state");
    }
    if (!path.empty()) tell_of_others(from, into, path);
}

void Fit::compare_lists(const StateList &from, const StateList &into, const std::string &path)
{
    if (from.items.size() != into.items.size())
        return tell(path, format("has %zu items in the state, but goes into %zu", from.items.size(),
                                 into.items.size()));
    for (size_t i = 0; i < into.items.size(); ++i)
        compare(*from.items[i], *into.items[i], path_below(path, std::to_string(i)));
}

void Fit::compare(const State &from, const State &into, const std::string &path)
{
    if (const auto *tensor = into.get_if<Tensor>()) return compare_tensors(from, *tensor, path);
    if (const auto *dict = into.get_if<StateDict>())
        if (const auto *given = from.get_if<StateDict>()) return compare_dicts(*given, *dict, path);
    if (const auto *list = into.get_if<StateList>())
        if (const auto *given = from.get_if<StateList>()) return compare_lists(*given, *list, path);
    const bool is_plain = into.kind() != StateKind::kDict && into.kind() != StateKind::kList;
    tell(path, is_plain ? "goes into " + shown(into) + ", but only tensors can be changed"
                        : "is " + shown(from) + " in the state, but goes into " + shown(into));
}

}  // namespace

std::vector<std::string> misfits(const State &from, const State &into)
{
    return Fit(from, into).wrong;
}

void copy_state(const State &from, const State &into, const char *call)
{
    constexpr size_t kMostShown = 20;
    const Fit fit(from, into);
    std::string lines;
    for (size_t i = 0; i < fit.wrong.size() && i < kMostShown; ++i) lines += "\n  " + fit.wrong[i];
    if (fit.wrong.size() > kMostShown)
        lines += format("\n  and %zu more", fit.wrong.size() - kMostShown);
    if (!fit.wrong.empty())
        fail(YOKE_E_VALUE, "%s: the state does not fit, and no tensor was changed:%s", call,
             lines.c_str());
    const NoGrad no_grad;
    for (const Fit::Pair &pair : fit.pairs) ops::copy_(*pair.into, *pair.from);
}

}  // namespace yoke
