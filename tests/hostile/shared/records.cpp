// Records: gradient graphs walked by several threads, shared casts, and captures replayed by several threads.
#include "scene.h"

#include <cstring>
#include <mutex>

namespace hostile {

namespace {

constexpr int64_t kSide = 16;

TensorHeld sum_of(yoke_tensor *x)
{
    TensorHeld sum;
    OK(yoke_sum(x, nullptr, 0, 0, YOKE_NONE, sum.out()));
    return sum;
}

// Returns sum(x · x · x), whose gradient is 3 where x is 1.
TensorHeld cubes(yoke_tensor *x)
{
    TensorHeld square, cube;
    OK(yoke_mul(x, x, square.out()));
    OK(yoke_mul(square, x, cube.out()));
    return sum_of(cube);
}

// Loss walked by all threads and never freed; each walk adds to the leaf, even if walks are simultaneous.
class Walks final : public Scene {
public:
    void piece(Dice &dice) override
    {
        TensorHeld held, detached;
        yoke_tensor *outputs[] = {loss_}, *inputs[] = {leaf_};
        yoke_saved saved{};
        saved.struct_size = sizeof saved;
        switch (dice.below(8)) {
            case 0:
                if (OK(yoke_grad(outputs, 1, nullptr, inputs, 1, 1, held.out())))
                    TRUE(ONLY_VALUE(held) == 3);
                break;
            case 1:  // another walk may add meanwhile, so the values are not read
                if (OK(yoke_tensor_grad(leaf_, held.out())) && held)
                    TRUE(yoke_tensor_numel(held) == kSide * kSide);
                break;
            case 2:
                TRUE(yoke_tensor_is_leaf(leaf_) == 1 && yoke_tensor_is_leaf(loss_) == 0);
                TRUE(yoke_tensor_requires_grad(loss_) == 1);
                break;
            case 3:
                TRUE(yoke_tensor_saved_count(square_) == 2);
                if (OK(yoke_tensor_saved(square_, 0, &saved)))
                    TRUE(!std::strcmp(saved.op, "mul") && saved.shape[0] == kSide);
                break;
            case 4: {  // another record over the same leaf
                const TensorHeld own = cubes(leaf_);
                if (OK(yoke_backward(own, nullptr, 0))) ++walks_;
                break;
            }
            case 5:
                if (OK(yoke_tensor_detach(leaf_, detached.out()))) TRUE(ONLY_VALUE(detached) == 1);
                break;
            default:
                if (OK(yoke_backward(loss_, nullptr, 1))) ++walks_;
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
    static TensorHeld square_of(yoke_tensor *x)
    {
        TensorHeld made;
        OK(yoke_mul(x, x, made.out()));
        return made;
    }
    const TensorHeld leaf_ = parameter(kSide, kSide, 1, 0), loss_ = cubes(leaf_),
                     square_ = square_of(leaf_);
    std::atomic<int64_t> walks_{0};
};

// Losses over a common trunk, which the first walk frees; the next threads get a new trunk.
class FreedWalks final : public Scene {
public:
    void piece(Dice &dice) override
    {
        const TensorHeld trunk = next_trunk(), own = full(kSide, kSide, 2);
        TensorHeld product;
        const bool direct = dice.below(2);
        if (!direct) OK(yoke_mul(trunk, own, product.out()));
        const TensorHeld loss = sum_of(direct ? trunk : product);
        const yoke_status status = yoke_backward(loss, nullptr, 0);
        if (!::hostile::expect_order(status, "freed by an earlier backward", __FILE__, __LINE__))
            ++refused_;
        const int64_t saved = yoke_tensor_saved_count(trunk);
        TRUE(saved == 0 || saved == 2);
    }

private:
    TensorHeld next_trunk()
    {
        const std::lock_guard lock(mutex_);
        if (taken_++ % 3 == 0) {
            TensorHeld square;
            OK(yoke_mul(leaf_, leaf_, square.out()));
            OK(yoke_mul(square, leaf_, trunk_.out()));
        }
        TensorHeld shared;
        *shared.out() = yoke_tensor_retain(trunk_);
        return shared;
    }

    const TensorHeld leaf_ = parameter(kSide, kSide, 1, 0);
    std::mutex mutex_;
    int64_t taken_ = 0;
    TensorHeld trunk_;
    std::atomic<int64_t> refused_{0};
};

// Weights multiplied by all threads in a half dtype, by casts kept in regions. A region is in force in all threads,
// with further regions nested inside, and each thread has some more.
class Casts final : public Scene {
public:
    Casts()
    {
        OK(yoke_autocast_create(1, YOKE_BF16, 1, outer_.out()));
        yoke_autocast *const before = yoke_autocast_swap(outer_);
        for (RegionHeld &region : nested_) OK(yoke_autocast_create(1, YOKE_BF16, 1, region.out()));
        yoke_autocast_swap(before);
    }

    void piece(Dice &dice) override
    {
        RegionHeld own;
        if (dice.below(4) == 0) OK(yoke_autocast_create(1, YOKE_BF16, 1, own.out()));
        yoke_autocast *const region = own             ? static_cast<yoke_autocast *>(own)
                                      : dice.below(2) ? static_cast<yoke_autocast *>(outer_)
                                                      : nested_[dice.below(3)];
        yoke_autocast *const before = yoke_autocast_swap(region);
        TRUE(yoke_is_autocast_enabled() == 1 && yoke_autocast_current() == region);
        yoke_autocast_release(yoke_autocast_retain(region));
        switch (dice.below(4)) {
            case 0:
                without_grad();
                break;
            case 1:
                captured();
                break;
            default:
                with_grad();
        }
        yoke_autocast_swap(before);
    }

    void check() override
    {
        TensorHeld gradient;
        OK(yoke_tensor_grad(weight_, gradient.out()));
        TRUE(walks_ == 0 ||
             ONLY_VALUE(gradient) == static_cast<float>(2 * 8 * static_cast<int64_t>(walks_)));
    }

private:
    // 16 products of a half and a half.
    static void holds_four(yoke_tensor *product)
    {
        TensorHeld wide;
        TRUE(yoke_tensor_dtype(product) == YOKE_BF16);
        if (OK(yoke_cast(product, YOKE_F32, wide.out()))) TRUE(ONLY_VALUE(wide) == 4);
    }

    void without_grad()
    {
        const int32_t before = yoke_set_grad_enabled(0);
        TensorHeld product;
        if (OK(yoke_matmul(weight_, other_, product.out()))) holds_four(product);
        yoke_set_grad_enabled(before);
    }

    void with_grad()
    {
        TensorHeld product;
        if (!OK(yoke_matmul(weight_, weight_, product.out()))) return;
        holds_four(product);
        const TensorHeld loss = sum_of(product);
        if (OK(yoke_backward(loss, nullptr, 0))) ++walks_;
    }

    void captured()
    {
        GraphHeld graph;
        TensorHeld product;
        if (!OK(yoke_graph_create(nullptr, graph.out())) || !OK(yoke_graph_begin(graph))) return;
        OK(yoke_matmul(weight_, other_, product.out()));
        if (OK(yoke_graph_end(graph)) && OK(yoke_graph_replay(graph))) holds_four(product);
    }

    const TensorHeld weight_ = parameter(kSide, kSide, 0.5, 0),
                     other_ = parameter(kSide, kSide, 0.5, 0);
    RegionHeld outer_, nested_[3];
    std::atomic<int64_t> walks_{0};
};

yoke_status add_one(yoke_tensor *x)
{
    const yoke_scalar one{YOKE_ARG_INT, 0, {.i = 1}};
    return yoke_add_scalar_(x, &one);
}

// A captured graph, x += 1 and a draw, replayed by all threads.
class Replays final : public Scene {
public:
    Replays()
    {
        const int64_t shape[] = {kSide};
        OK(yoke_graph_create(nullptr, graph_.out()));
        OK(yoke_graph_begin(graph_));
        OK(add_one(x_));
        OK(yoke_randn(shape, 1, YOKE_F32, nullptr, nullptr, drawn_.out()));
        OK(yoke_graph_end(graph_));
    }

    void piece(Dice &dice) override
    {
        switch (dice.below(8)) {
            case 0:
                yoke_graph_release(yoke_graph_retain(graph_));
                break;
            case 1:
                TRUE(yoke_graph_begin(graph_) == YOKE_E_STATE);
                TRUE(yoke_graph_end(graph_) == YOKE_E_STATE);
                yoke_graph_abort(graph_);
                break;
            default:
                if (IN_TURN(yoke_graph_replay(graph_))) ++replays_;
        }
    }

    void check() override { TRUE(ONLY_VALUE(x_) == static_cast<float>(replays_)); }

private:
    const TensorHeld x_ = full(kSide, kSide, 0);
    GraphHeld graph_;
    TensorHeld drawn_;
    std::atomic<int64_t> replays_{0};
};

// Graph begun and aborted by each thread, while other threads try to begin, end and replay the graph.
class GivenUp final : public Scene {
public:
    GivenUp() { OK(yoke_graph_create(nullptr, graph_.out())); }

    void piece(Dice &dice) override
    {
        if (dice.below(3) == 0) {
            TRUE(yoke_graph_replay(graph_) == YOKE_E_STATE);
            return;
        }
        if (!IN_ORDER(yoke_graph_begin(graph_))) {
            TRUE(yoke_graph_end(graph_) == YOKE_E_STATE);
            return;
        }
        OK(add_one(x_));
        TensorHeld sum;
        OK(yoke_add(x_, x_, sum.out()));
        yoke_graph_abort(graph_);
    }

    void check() override
    {
        TRUE(ONLY_VALUE(x_) == 0);
        OK(yoke_graph_begin(graph_));
        OK(add_one(x_));
        OK(yoke_graph_end(graph_));
        OK(yoke_graph_replay(graph_));
        TRUE(ONLY_VALUE(x_) == 1);
    }

private:
    const TensorHeld x_ = full(kSide, kSide, 0);
    GraphHeld graph_;
};

template <class T>
std::unique_ptr<Scene> make()
{
    return std::make_unique<T>();
}

}  // namespace

std::span<const SceneKind> record_scenes()
{
    static constexpr SceneKind kScenes[] = {
        {"walks", make<Walks>, 100},      {"freed_walks", make<FreedWalks>, 100},
        {"casts", make<Casts>, 100},      {"replays", make<Replays>, 100},
        {"given_up", make<GivenUp>, 100},
    };
    return kScenes;
}

}  // namespace hostile
