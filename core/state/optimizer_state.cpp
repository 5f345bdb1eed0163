// The state of an optimizer: core/state/objects.h.
#include "core/autograd/node.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/ops.h"
#include "core/optim/adam.h"
#include "core/optim/sgd.h"
#include "core/state/fields.h"
#include "core/state/objects.h"

#include <algorithm>

namespace yoke {

namespace {

constexpr const char *kWrongKind = "load the state into the kind of optimizer that saved it";

// ---- Options --------------------------------------------------------------------------------------------------

void put(State &dict, const char *key, State::Value value)
{
    dict.put(std::string(key), State::make(std::move(value)), kLoadCall);
}

// Returns the options under PyTorch's names and in PyTorch's order, then Yoke's own options.
Ref<State> tree_of(const SgdOptions &options)
{
    Ref<State> dict = State::make(StateDict());
    put(*dict, "lr", options.lr);
    put(*dict, "momentum", options.momentum);
    put(*dict, "weight_decay", options.weight_decay);
    put(*dict, "nesterov", options.nesterov);
    put(*dict, "master_weights", options.master_weights);
    return dict;
}

Ref<State> tree_of(const AdamOptions &options)
{
    Ref<State> dict = State::make(StateDict());
    put(*dict, "lr", options.lr);
    put(*dict, "betas", StateList{{State::make(options.beta1), State::make(options.beta2)}, true});
    put(*dict, "eps", options.eps);
    put(*dict, "weight_decay", options.weight_decay);
    put(*dict, "master_weights", options.master_weights);
    return dict;
}

bool masters_of(const Fields &group, const yoke_optimizer::CommonOptions &own)
{
    return group.find("master_weights") ? group.truth("master_weights") : own.master_weights;
}

SgdOptions options_of(const Fields &group, const SgdOptions &own)
{
    SgdOptions options;
    options.lr = group.number("lr");
    options.momentum = group.number("momentum");
    options.weight_decay = group.number("weight_decay");
    options.nesterov = group.truth("nesterov");
    options.master_weights = masters_of(group, own);
    return options;
}

AdamOptions options_of(const Fields &group, const AdamOptions &own)
{
    AdamOptions options;
    options.lr = group.number("lr");
    const StateList &betas = group.list("betas");
    if (betas.items.size() != 2)
        refuse_kind(group.at("betas"), group.place_of("betas"), "a pair of numbers");
    options.beta1 = number_of(*betas.items[0], group.place_of("betas"));
    options.beta2 = number_of(*betas.items[1], group.place_of("betas"));
    options.eps = group.number("eps");
    options.weight_decay = group.number("weight_decay");
    options.master_weights = masters_of(group, own);
    return options;
}

// Returns whether an option of PyTorch's changes no number of a step, or has the only value possible here.
bool is_harmless(const yoke_optimizer &optimizer, std::string_view option, const State &value)
{
    constexpr std::string_view kAside[] = {"params", "capturable", "differentiable", "foreach",
                                           "fused",  "initial_lr", "param_names"};
    if (std::ranges::find(kAside, option) != std::end(kAside)) return true;
    const bool is_implied =
        option == "decoupled_weight_decay" && std::string_view(optimizer.kind()) == "AdamW";
    if (const auto *truth = value.get_if<bool>()) return *truth == is_implied;
    const auto *number = value.get_if<double>();
    const auto *whole = value.get_if<int64_t>();
    const double is = number ? *number : whole ? static_cast<double>(*whole) : -1;
    return value.kind() == StateKind::kNone || is == (is_implied ? 1 : 0);
}

std::string keys_of(const State &dict)
{
    return joined(dict.get_if<StateDict>()->entries(), ", ",
                  [](const StateDict::Entry &entry) { return path_part(entry.key); });
}

void check_options(const yoke_optimizer &optimizer, const State &own, const Fields &group)
{
    const std::string known = keys_of(own);
    for (const StateDict::Entry &entry : own.get_if<StateDict>()->entries()) {
        const auto &key = std::get<std::string>(entry.key);
        if (!group.find(key) && key != "master_weights")  // missing in PyTorch
            fail(YOKE_E_VALUE, "%s: %s has no option '%s'; %s has %s; %s", kLoadCall,
                 group.place().c_str(), key.c_str(), optimizer.kind(), known.c_str(), kWrongKind);
    }
    for (const StateDict::Entry &entry : group.dict().entries()) {
        const std::string key = path_part(entry.key);
        if (own.get_if<StateDict>()->find(entry.key) || is_harmless(optimizer, key, *entry.value))
            continue;
        fail(
            YOKE_E_VALUE,
            "%s: %s has the option '%s', %s, but %s has no such option: it has %s; %s, or remove '%s' from the state",
            kLoadCall, group.place().c_str(), key.c_str(), shown(*entry.value).c_str(),
            optimizer.kind(), known.c_str(), kWrongKind, key.c_str());
    }
}

// ---- States ---------------------------------------------------------------------------------------------------

// Returns the name of a state in a saved state: PyTorch's name, if it differs from the core's name.
const char *stored_name(const char *name)
{
    return std::string_view(name) == "momentum" ? "momentum_buffer" : name;
}

// Returns whether the state may be missing: it then begins as zeros with the next step.
bool may_lack(std::string_view name)
{
    return name == "momentum";
}

std::string names_of(const yoke_optimizer &optimizer, bool only_needed, bool has_master)
{
    std::string text;
    for (const char *name : optimizer.state_names()) {
        const bool is_master = std::string_view(name) == "master";
        if (only_needed && (is_master ? !has_master : may_lack(name))) continue;
        add_part(text, stored_name(name));
    }
    return text;
}

// Tensors of a parameter, in the order of the optimizer's names.
class ParamState {
public:
    ParamState(const yoke_optimizer &optimizer, const yoke_tensor &param, bool masters)
        : optimizer_(optimizer), param_(param), has_master_(masters && is_half(param.dtype))
    {
    }
    std::vector<Tensor> read(const Fields &state) const;

private:
    void check_known(const Fields &state) const;
    Tensor tensor(const Fields &state, const char *name) const;

    const yoke_optimizer &optimizer_;
    const yoke_tensor &param_;
    const bool has_master_;
};

void ParamState::check_known(const Fields &state) const
{
    for (const StateDict::Entry &entry : state.dict().entries()) {
        const std::string key = path_part(entry.key);
        const bool is_known = std::ranges::any_of(
            optimizer_.state_names(), [&](const char *name) { return key == stored_name(name); });
        if (!is_known && entry.value->kind() != StateKind::kNone)
            fail(YOKE_E_VALUE, "%s: %s has '%s', %s, but %s has no such state: it has %s; %s",
                 kLoadCall, state.place().c_str(), key.c_str(), shown(*entry.value).c_str(),
                 optimizer_.kind(), names_of(optimizer_, false, true).c_str(), kWrongKind);
    }
}

Tensor ParamState::tensor(const Fields &state, const char *name) const
{
    const State *node = state.find(stored_name(name));
    if (!node || node->kind() == StateKind::kNone) return {};
    const bool is_count = std::string_view(name) == "step" && node->kind() != StateKind::kTensor;
    if (!is_count) return tensor_of(*node, state.place_of(stored_name(name)));
    const auto count = static_cast<float>(number_of(*node, state.place_of(name)));
    Tensor made = make_tensor(*param_.device, YOKE_F32, {}, kLoadCall);
    ops::fill_(made, static_cast<double>(count));
    return made;
}

std::vector<Tensor> ParamState::read(const Fields &state) const
{
    check_known(state);
    std::vector<Tensor> found;
    for (const char *name : optimizer_.state_names()) found.push_back(tensor(state, name));
    if (std::ranges::none_of(found, &Tensor::present)) return found;
    for (size_t i = 0; i < found.size(); ++i) {
        const char *name = optimizer_.state_names()[i];
        const bool is_master = std::string_view(name) == "master";
        if (found[i].present() || (is_master ? !has_master_ : may_lack(name))) continue;
        fail(
            YOKE_E_VALUE,
            "%s: %s has no '%s'; %s needs %s; save all of them, or leave out the parameter's state to start it anew",
            kLoadCall, state.place().c_str(), stored_name(name), optimizer_.kind(),
            names_of(optimizer_, true, has_master_).c_str());
    }
    return found;
}

// ---- The whole ------------------------------------------------------------------------------------------------

// Loader for an optimizer with options of this type.
template <class Options>
class OptimizerLoader {
public:
    OptimizerLoader(OptimizerOf<Options> &optimizer, const State &state)
        : optimizer_(optimizer),
          whole_(state, "argument 'state_dict'", {"param_groups", "state"}),
          groups_(whole_.list("param_groups")),
          states_(whole_.at("state"), "'state'")
    {
    }

    void load()
    {
        check_counts();
        std::vector<Options> before, after;
        for (size_t g = 0; g < groups_.items.size(); ++g) {
            const Fields group = group_at(g);
            before.push_back(optimizer_.options(static_cast<int64_t>(g)));
            check_options(optimizer_, *tree_of(before.back()), group);
            after.push_back(options_of(group, before.back()));
        }
        const auto states = read_states(after);
        set_options(after, before);
        try {
            optimizer_.set_states(states);
        } catch (...) {
            set_options(before, before);
            throw;
        }
    }

private:
    Fields group_at(size_t g) const
    {
        return Fields(*groups_.items[g], format("group %zu of the state", g), {"params"});
    }
    void check_counts() const;
    std::vector<std::vector<std::vector<Tensor>>> read_states(
        const std::vector<Options> &options) const;
    // Sets the options of all groups. If a group refuses, restores the options from before, and raises.
    void set_options(const std::vector<Options> &options, const std::vector<Options> &before)
    {
        for (size_t g = 0; g < options.size(); ++g) {
            try {
                optimizer_.set_options(static_cast<int64_t>(g), options[g]);
            } catch (...) {
                for (size_t i = 0; i < g; ++i)
                    optimizer_.set_options(static_cast<int64_t>(i), before[i]);
                throw;
            }
        }
    }

    OptimizerOf<Options> &optimizer_;
    const Fields whole_;
    const StateList &groups_;
    const Fields states_;
};

template <class Options>
void OptimizerLoader<Options>::check_counts() const
{
    std::string given, own;
    int64_t count = 0;
    for (size_t g = 0; g < groups_.items.size(); ++g)
        add_part(given, std::to_string(group_at(g).list("params").items.size()));
    for (size_t g = 0; g < optimizer_.group_count(); ++g) {
        const size_t params = optimizer_.params(static_cast<int64_t>(g)).size();
        add_part(own, std::to_string(params));
        count += static_cast<int64_t>(params);
    }
    if (given != own)
        fail(
            YOKE_E_VALUE,
            "%s: the state has groups of [%s] parameters, but the optimizer has groups of [%s]; make the optimizer with the same groups first",
            kLoadCall, given.c_str(), own.c_str());
    for (const StateDict::Entry &entry : states_.dict().entries()) {
        const auto *number = std::get_if<int64_t>(&entry.key);
        if (!number || *number < 0 || *number >= count)
            fail(
                YOKE_E_VALUE,
                "%s: the state has parameter %s%s%s, but there are %lld parameters, counted from 0",
                kLoadCall, number ? "" : "'", path_part(entry.key).c_str(), number ? "" : "'",
                static_cast<long long>(count));
    }
}

template <class Options>
std::vector<std::vector<std::vector<Tensor>>> OptimizerLoader<Options>::read_states(
    const std::vector<Options> &options) const
{
    std::vector<std::vector<std::vector<Tensor>>> all(options.size());
    int64_t number = 0;
    for (size_t g = 0; g < options.size(); ++g) {
        const auto &params = optimizer_.params(static_cast<int64_t>(g));
        for (size_t i = 0; i < params.size(); ++i, ++number) {
            const State *node = states_.dict().find(number);
            if (!node) {
                all[g].emplace_back(optimizer_.state_names().size());
                continue;
            }
            const std::string place = format("state[%lld], of parameter %zu of group %zu,",
                                             static_cast<long long>(number), i, g);
            const ParamState reader(optimizer_, *params[i], options[g].master_weights);
            all[g].push_back(reader.read(Fields(*node, place)));
        }
    }
    return all;
}

Ref<State> options_tree(const yoke_optimizer &optimizer, int64_t group)
{
    if (const auto *sgd = dynamic_cast<const Sgd *>(&optimizer))
        return tree_of(sgd->options(group));
    return tree_of(dynamic_cast<const Adam &>(optimizer).options(group));
}

}  // namespace

Ref<State> state_of(const yoke_optimizer &optimizer)
{
    StateDict states;
    StateList groups;
    int64_t number = 0;
    for (int64_t g = 0; g < static_cast<int64_t>(optimizer.group_count()); ++g) {
        StateList numbers;
        for (size_t i = 0; i < optimizer.params(g).size(); ++i, ++number) {
            StateDict found;
            for (const char *name : optimizer.state_names())
                if (Tensor each = optimizer.state(g, static_cast<int64_t>(i), name); each.present())
                    found.put(std::string(stored_name(name)), State::make(std::move(each)));
            if (!found.entries().empty()) states.put(number, State::make(std::move(found)));
            numbers.items.push_back(State::make(number));
        }
        groups.items.push_back(options_tree(optimizer, g));
        put(*groups.items.back(), "params", std::move(numbers));
    }
    Ref<State> whole = State::make(StateDict());
    put(*whole, "state", std::move(states));
    put(*whole, "param_groups", std::move(groups));
    return whole;
}

void load_state(yoke_optimizer &optimizer, const State &state)
{
    const NoGrad no_grad;
    if (auto *sgd = dynamic_cast<Sgd *>(&optimizer))
        return OptimizerLoader<SgdOptions>(*sgd, state).load();
    OptimizerLoader<AdamOptions>(dynamic_cast<Adam &>(optimizer), state).load();
}

}  // namespace yoke
