// Checkpoint scopes walked by several threads: each thread recomputes the dropped tensors, and all read the held
// tensors.
#include "scene.h"

#include <mutex>

namespace hostile {

namespace {

constexpr int64_t kSide = 16;
using ScopeHeld = Held<yoke_checkpoint, yoke_checkpoint_release>;
using BudgetHeld = Held<yoke_memory_budget, yoke_memory_budget_release>;

yoke_checkpoint_options policy(const char *name)
{
    yoke_checkpoint_options options{};
    options.struct_size = sizeof options;
    options.policy = name;
    return options;
}

// Returns relu(x @ x) @ x / kSide² in two nested scopes; the gradient is 3 where x is 1.
TensorHeld made_in_scopes(yoke_tensor *x, TensorHeld &middle)
{
    TensorHeld product, second, scaled, sum, factor = full(1, 1, 1.0f / (kSide * kSide));
    const yoke_checkpoint_options full = policy("full"), matmul = policy("matmul");
    ScopeHeld outer, inner;
    OK(yoke_checkpoint_begin(&full, outer.out()));
    OK(yoke_matmul(x, x, product.out()));
    OK(yoke_checkpoint_begin(&matmul, inner.out()));
    OK(yoke_relu(product, middle.out()));
    OK(yoke_matmul(middle, x, second.out()));
    OK(yoke_checkpoint_end(inner));
    OK(yoke_mul(second, factor, scaled.out()));
    OK(yoke_checkpoint_end(outer));
    OK(yoke_sum(scaled, nullptr, 0, 0, YOKE_NONE, sum.out()));
    return sum;
}

// Loss walked by all threads and never freed.
class ScopeWalks final : public Scene {
public:
    void piece(Dice &dice) override
    {
        TensorHeld gradient;
        yoke_tensor *outputs[] = {loss_}, *inputs[] = {leaf_};
        yoke_saved saved{};
        saved.struct_size = sizeof saved;
        switch (dice.below(3)) {
            case 0:
                if (OK(yoke_backward(loss_, nullptr, 1))) ++walks_;
                break;
            case 1:
                if (OK(yoke_tensor_saved(middle_, 0, &saved))) TRUE(saved.shape[0] == kSide);
                break;
            default:
                if (OK(yoke_grad(outputs, 1, nullptr, inputs, 1, 1, gradient.out())))
                    TRUE(ONLY_VALUE(gradient) == 3);
        }
    }
    void check() override
    {
        TensorHeld gradient;
        OK(yoke_tensor_grad(leaf_, gradient.out()));
        TRUE(walks_ == 0 ||
             ONLY_VALUE(gradient) == static_cast<float>(3 * static_cast<int64_t>(walks_)));
    }

private:
    const TensorHeld leaf_ = parameter(kSide, kSide, 1, 0);
    TensorHeld middle_;
    const TensorHeld loss_ = made_in_scopes(leaf_, middle_);
    std::atomic<int64_t> walks_{0};
};

// Losses over a common scope, which the first walk frees; the next threads get a new scope.
class FreedScopes final : public Scene {
public:
    void piece(Dice &) override
    {
        const TensorHeld trunk = next_trunk(), own = full(1, 1, 2);
        TensorHeld loss;
        OK(yoke_mul(trunk, own, loss.out()));
        TensorHeld sum;
        OK(yoke_sum(loss, nullptr, 0, 0, YOKE_NONE, sum.out()));
        const yoke_status status = yoke_backward(sum, nullptr, 0);
        ::hostile::expect_order(status, "freed by an earlier backward", __FILE__, __LINE__);
    }

private:
    TensorHeld next_trunk()
    {
        const std::lock_guard lock(mutex_);
        if (taken_++ % 3 == 0) {
            TensorHeld middle;
            trunk_ = made_in_scopes(leaf_, middle);
        }
        TensorHeld shared;
        *shared.out() = yoke_tensor_retain(trunk_);
        return shared;
    }

    const TensorHeld leaf_ = parameter(kSide, kSide, 1, 0);
    std::mutex mutex_;
    int64_t taken_ = 0;
    TensorHeld trunk_;
};

// Losses of a budget's forwards, which all threads walk and report on. If a thread begins the next forward while
// another thread has a forward open, the call is refused.
class BudgetForwards final : public Scene {
public:
    BudgetForwards() { begin_next(); }
    void piece(Dice &dice) override
    {
        yoke_memory_budget_figures figures{};
        figures.struct_size = sizeof figures;
        switch (dice.below(4)) {
            case 0:
                begin_next();
                break;
            case 1:
                if (OK(yoke_memory_budget_report(budget_, &figures)))
                    TRUE(figures.steps >= 0 && figures.forwards <= 1);
                break;
            default:
                walk(latest());
        }
    }

private:
    void begin_next()
    {
        yoke_checkpoint_options options = policy("budget");
        options.budget = budget_;
        ScopeHeld scope;
        const yoke_status status = yoke_checkpoint_begin(&options, scope.out());
        if (!::hostile::expect_order(status, "a memory budget that is in use", __FILE__, __LINE__))
            return;
        TensorHeld loss = forward();
        OK(yoke_checkpoint_end(scope));
        const std::lock_guard lock(mutex_);
        *latest_.out() = yoke_tensor_retain(loss);
    }
    // Returns the sum of relu(...relu(x) * x...), whose gradient is 7 where x is 1.
    TensorHeld forward()
    {
        TensorHeld y, sum;
        OK(yoke_relu(leaf_, y.out()));
        for (int i = 0; i < 6; ++i) {
            TensorHeld product, next;
            OK(yoke_mul(y, leaf_, product.out()));
            OK(yoke_relu(product, next.out()));
            *y.out() = yoke_tensor_retain(next);
        }
        OK(yoke_sum(y, nullptr, 0, 0, YOKE_NONE, sum.out()));
        return sum;
    }
    void walk(const TensorHeld &loss)
    {
        TensorHeld gradient;
        yoke_tensor *outputs[] = {loss}, *inputs[] = {leaf_};
        if (OK(yoke_grad(outputs, 1, nullptr, inputs, 1, 1, gradient.out())))
            TRUE(ONLY_VALUE(gradient) == 7);
    }
    TensorHeld latest()
    {
        const std::lock_guard lock(mutex_);
        TensorHeld shared;
        *shared.out() = yoke_tensor_retain(latest_);
        return shared;
    }
    static BudgetHeld made()
    {
        BudgetHeld budget;
        OK(yoke_memory_budget_create("0.5", budget.out()));
        return budget;
    }

    const TensorHeld leaf_ = parameter(kSide, kSide, 1, 0);
    const BudgetHeld budget_ = made();
    std::mutex mutex_;
    TensorHeld latest_;
};

template <class T>
std::unique_ptr<Scene> make()
{
    return std::make_unique<T>();
}

}  // namespace

std::span<const SceneKind> scope_scenes()
{
    static constexpr SceneKind kScenes[] = {
        {"scope_walks", make<ScopeWalks>, 100},
        {"freed_scopes", make<FreedScopes>, 100},
        {"budget_forwards", make<BudgetForwards>, 100},
    };
    return kScenes;
}

}  // namespace hostile
