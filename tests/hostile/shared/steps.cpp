// Optimizers, a grad scaler, averages: a second thread is refused, and what was not refused has been done as a whole.
#include "scene.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

namespace hostile {

namespace {

constexpr int64_t kRows = 8, kColumns = 8;

enum class Rule { kSgd, kAdam, kAdamw };

const yoke_sgd_options kSgd{sizeof kSgd, 0, 1.0 / 64, 0.5, 0, 0, 0};
const yoke_adam_options kAdam{sizeof kAdam, 0, 1e-2, 0.9, 0.999, 1e-8, 0.01};

OptimizerHeld make_optimizer(Rule rule, yoke_tensor *param)
{
    OptimizerHeld made;
    OK(rule == Rule::kSgd    ? yoke_sgd_create(&kSgd, made.out())
       : rule == Rule::kAdam ? yoke_adam_create(&kAdam, made.out())
                             : yoke_adamw_create(&kAdam, made.out()));
    OK(rule == Rule::kSgd ? yoke_sgd_add_group(made, &param, 1, nullptr)
                          : yoke_adam_add_group(made, &param, 1, nullptr));
    return made;
}

yoke_status set_same_options(Rule rule, yoke_optimizer *optimizer)
{
    return rule == Rule::kSgd ? yoke_sgd_set_options(optimizer, 0, &kSgd)
                              : yoke_adam_set_options(optimizer, 0, &kAdam);
}

// Same bits; neither may be absent alone.
bool same_values(yoke_tensor *a, yoke_tensor *b)
{
    if (!a || !b) return !a && !b;
    const std::vector<float> left = values_of(a), right = values_of(b);
    return left.size() == right.size() &&
           std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

// Looks into an optimizer, like a host program that shows or saves the optimizer. Another thread may step the
// optimizer meanwhile, so values are not read.
void look_into(yoke_optimizer *optimizer, Rule rule, Dice &dice)
{
    TensorHeld held;
    double lr = 0;
    int64_t count = 0;
    switch (dice.below(7)) {
        case 0:
            if (IN_TURN(yoke_optimizer_get_lr(optimizer, 0, &lr)))
                TRUE(lr == (rule == Rule::kSgd ? kSgd.lr : kAdam.lr));
            break;
        case 1:
            IN_TURN(yoke_optimizer_set_lr(optimizer, -1, rule == Rule::kSgd ? kSgd.lr : kAdam.lr));
            break;
        case 2:
            if (yoke_optimizer_group_count(optimizer) < 1) IN_TURN(yoke_last_error()->status);
            if (IN_TURN(yoke_optimizer_param_count(optimizer, 0, &count))) TRUE(count == 1);
            break;
        case 3:
            if (IN_TURN(yoke_optimizer_param(optimizer, 0, 0, held.out())))
                TRUE(yoke_tensor_numel(held) == kRows * kColumns);
            break;
        case 4: {
            const char *name = yoke_optimizer_state_name(optimizer, 0);
            if (!name) {
                IN_TURN(yoke_last_error()->status);
                break;
            }
            if (IN_TURN(yoke_optimizer_get_state(optimizer, 0, 0, name, held.out())) && held)
                TRUE(yoke_tensor_numel(held) == kRows * kColumns);
            break;
        }
        case 5:
            IN_TURN(set_same_options(rule, optimizer));
            break;
        default:
            yoke_optimizer_release(yoke_optimizer_retain(optimizer));
    }
}

// Steps alone: their number determines every bit of parameter and state.
template <Rule kRule>
class Steps final : public Scene {
public:
    void piece(Dice &dice) override
    {
        if (dice.below(2)) {
            look_into(optimizer_, kRule, dice);
        } else if (IN_TURN(yoke_optimizer_step(optimizer_))) {
            ++steps_;
        }
    }

    void check() override
    {
        const TensorHeld param = parameter(kRows, kColumns, 1, 0.25);
        const OptimizerHeld other = make_optimizer(kRule, param);
        for (int64_t i = 0; i < steps_; ++i) OK(yoke_optimizer_step(other));
        ONLY_VALUE(param_);
        if (!same_values(param_, param))
            wrong(__FILE__, __LINE__, "%lld steps gave %.9g, and %.9g in one thread",
                  static_cast<long long>(steps_.load()), static_cast<double>(ONLY_VALUE(param_)),
                  static_cast<double>(ONLY_VALUE(param)));
        for (int64_t i = 0; const char *name = yoke_optimizer_state_name(other, i); ++i) {
            TensorHeld mine, wanted;
            OK(yoke_optimizer_get_state(optimizer_, 0, 0, name, mine.out()));
            OK(yoke_optimizer_get_state(other, 0, 0, name, wanted.out()));
            TRUE(same_values(mine, wanted));
        }
    }

private:
    const TensorHeld param_ = parameter(kRows, kColumns, 1, 0.25);
    const OptimizerHeld optimizer_ = make_optimizer(kRule, param_);
    std::atomic<int64_t> steps_{0};
};

// Steps among all else that changes an optimizer: gradients are zeroed and given anew, states replaced, groups added.
template <Rule kRule>
class Changes final : public Scene {
public:
    void piece(Dice &dice) override
    {
        switch (dice.below(16)) {
            case 0:
                IN_TURN(yoke_optimizer_zero_grad(optimizer_, 0));
                break;
            case 1:
                IN_TURN(yoke_optimizer_zero_grad(optimizer_, 1));
                OK(yoke_tensor_set_grad(param_, full(kRows, kColumns, 0.25)));
                break;
            case 2:
                replace_state(dice);
                break;
            case 3:
                add_group(dice);
                break;
            case 4:
            case 5:
            case 6:
                look_into(optimizer_, kRule, dice);
                break;
            default:
                if (IN_TURN(yoke_optimizer_step(optimizer_))) ++steps_;
        }
    }

    void check() override
    {
        TRUE(yoke_optimizer_group_count(optimizer_) == 1 + added_);
        TRUE(std::isfinite(ONLY_VALUE(param_)));
    }

private:
    void replace_state(Dice &dice)
    {
        const char *name = kRule == Rule::kSgd ? "momentum" : "exp_avg";
        if (dice.below(2))
            IN_TURN(yoke_optimizer_set_state(optimizer_, 0, 0, name, full(kRows, kColumns, 0)));
        else
            IN_TURN(yoke_optimizer_set_state(optimizer_, 0, 0, name, nullptr));
    }

    void add_group(Dice &dice)
    {
        if (dice.below(8)) return;
        const TensorHeld more = parameter(2, 2, 1, 0);
        yoke_tensor *params[] = {more};
        if (IN_TURN(kRule == Rule::kSgd ? yoke_sgd_add_group(optimizer_, params, 1, nullptr)
                                        : yoke_adam_add_group(optimizer_, params, 1, nullptr)))
            ++added_;
    }

    const TensorHeld param_ = parameter(kRows, kColumns, 1, 0.25);
    const OptimizerHeld optimizer_ = make_optimizer(kRule, param_);
    std::atomic<int64_t> steps_{0}, added_{0};
};

// A scaler and an optimizer that other threads also step without the scaler. The scale stays 1, so gradients stay
// equal.
class Scaling final : public Scene {
public:
    Scaling()
    {
        const yoke_grad_scaler_options rule{sizeof rule, 0, 1, 2, 0.5, kNeverGrows, 0};
        OK(yoke_grad_scaler_create(&rule, scaler_.out()));
        TensorHeld scaled;
        OK(yoke_grad_scaler_scale(scaler_, loss_, scaled.out()));
    }

    void piece(Dice &dice) override
    {
        TensorHeld scaled;
        yoke_grad_scaler_options now{};
        now.struct_size = sizeof now;
        switch (dice.below(8)) {
            case 0:
                if (IN_TURN(yoke_grad_scaler_scale(scaler_, loss_, scaled.out())))
                    TRUE(ONLY_VALUE(scaled) == 3);
                break;
            case 1:
                IN_ORDER(yoke_grad_scaler_unscale(scaler_, optimizer_));
                break;
            case 2:
                if (IN_ORDER(yoke_grad_scaler_update(scaler_))) ++updates_;
                break;
            case 3:
                if (IN_TURN(yoke_grad_scaler_get_state(scaler_, &now)))
                    TRUE(now.scale == 1 && now.growth_tracker >= 0);
                break;
            case 4:
                IN_TURN(yoke_grad_scaler_set_rule(scaler_, 2, 0.5, kNeverGrows));
                break;
            case 5:
                if (IN_TURN(yoke_optimizer_step(optimizer_))) ++steps_;
                break;
            default:
                if (IN_ORDER(yoke_grad_scaler_step(scaler_, optimizer_))) ++steps_;
        }
    }

    void check() override
    {
        yoke_grad_scaler_options now{};
        now.struct_size = sizeof now;
        OK(yoke_grad_scaler_get_state(scaler_, &now));
        TRUE(now.growth_tracker == updates_);
        const TensorHeld param = parameter(kRows, kColumns, 1, 0.25);
        const OptimizerHeld other = make_optimizer(Rule::kSgd, param);
        for (int64_t i = 0; i < steps_; ++i) OK(yoke_optimizer_step(other));
        ONLY_VALUE(param_);
        TRUE(same_values(param_, param));
    }

private:
    static constexpr int64_t kNeverGrows = 1 << 30;
    const TensorHeld param_ = parameter(kRows, kColumns, 1, 0.25), loss_ = full(1, 1, 3);
    const OptimizerHeld optimizer_ = make_optimizer(Rule::kSgd, param_);
    ScalerHeld scaler_;
    std::atomic<int64_t> steps_{0}, updates_{0};
};

// Averages of 0 on their way to a parameter of 1.
class Averages final : public Scene {
public:
    Averages() : average_(begin(param_)) {}

    void piece(Dice &dice) override
    {
        TensorHeld live;
        switch (dice.below(8)) {
            case 0:
                if (IN_TURN(yoke_ema_swap(average_))) ++swaps_;
                break;
            case 1:
                if (IN_TURN(yoke_ema_average(average_, 0, live.out())))
                    TRUE(yoke_tensor_numel(live) == kRows * kColumns);
                break;
            default:
                if (IN_ORDER(yoke_ema_update(average_))) ++updates_;
        }
    }

    void check() override
    {
        if (swaps_ % 2) OK(yoke_ema_swap(average_));
        TRUE(ONLY_VALUE(param_) == 1);
        const TensorHeld param = full(kRows, kColumns, 0);
        const EmaHeld other = begin(param);
        for (int64_t i = 0; i < updates_; ++i) OK(yoke_ema_update(other));
        TensorHeld mine, wanted;
        OK(yoke_ema_average(average_, 0, mine.out()));
        OK(yoke_ema_average(other, 0, wanted.out()));
        TRUE(same_values(mine, wanted));
        OK(yoke_ema_copy_to_params(average_));
        TRUE(same_values(mine, param_));
    }

private:
    static EmaHeld begin(yoke_tensor *param)
    {
        EmaHeld made;
        OK(yoke_ema_create(&param, 1, 0.99, made.out()));
        const std::vector<float> ones(static_cast<size_t>(kRows * kColumns), 1.0f);
        OK(yoke_tensor_copy_from_host(param, ones.data(), yoke_tensor_nbytes(param)));
        return made;
    }

    const TensorHeld param_ = full(kRows, kColumns, 0);
    const EmaHeld average_;
    std::atomic<int64_t> swaps_{0}, updates_{0};
};

template <class T>
std::unique_ptr<Scene> make()
{
    return std::make_unique<T>();
}

}  // namespace

std::span<const SceneKind> step_scenes()
{
    static constexpr SceneKind kScenes[] = {
        {"sgd", make<Steps<Rule::kSgd>>, 100},
        {"adam", make<Steps<Rule::kAdam>>, 100},
        {"adamw", make<Steps<Rule::kAdamw>>, 100},
        {"sgd_changes", make<Changes<Rule::kSgd>>, 100},
        {"adam_changes", make<Changes<Rule::kAdam>>, 100},
        {"scaler", make<Scaling>, 100},
        {"averages", make<Averages>, 100},
    };
    return kScenes;
}

}  // namespace hostile
