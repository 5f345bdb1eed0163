#include "core/ops/views.h"

#include "core/autograd/backward.h"
#include "core/autograd/notes.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace yoke {

namespace {

// ---- A view within its base ----------------------------------------------------------------------------------

// Places of a view's elements among those of its base, as strides and offsets in elements.
class Region {
public:
    Region(const yoke_tensor &base, const yoke_tensor &view)
        : device_(*base.device),
          dtype_(base.dtype),
          base_shape_(base.shape()),
          base_strides_(base.strides()),
          shape_(view.shape()),
          strides_(view.strides()),
          offset_((view.data - base.data) / static_cast<int64_t>(item_size(base.dtype)))
    {
        for (int i = 0; i < base.ndim && base.numel; ++i) {
            const int64_t reach = base.strides_[i] * (base.shape_[i] - 1);
            (reach < 0 ? lowest_ : highest_) += reach;
        }
    }

    // Returns zeros that lie in memory as the base does.
    Tensor zeros() const { return in_line(ops::zeros(Dims{extent()}, dtype_, &device_)); }
    // Returns the gradient of the base in memory of its own that lies as the base does.
    Tensor laid_out(const Tensor &gradient) const
    {
        const Tensor made = in_line(ops::empty(Dims{extent()}, dtype_, &device_));
        ops::copy_(made, gradient);
        return made;
    }
    // Returns the view of a tensor that lies as the base does.
    Tensor of(const yoke_tensor &whole) const
    {
        return make_view(whole, shape_, strides_.data(), offset_);
    }
    bool lies_alike(const yoke_tensor &x) const { return same(x.strides(), base_strides_); }
    bool overlaps_itself() const;
    // Returns the gradient of the base: that of the view in the view's places, else 0.
    Tensor spread(const Tensor &gradient) const;

private:
    int64_t extent() const { return highest_ - lowest_ + 1; }
    Tensor in_line(const Tensor &line) const
    {
        return make_view(line, base_shape_, base_strides_.data(), -lowest_);
    }

    Device &device_;
    const yoke_dtype dtype_;
    const Dims base_shape_, base_strides_, shape_, strides_;
    const int64_t offset_;
    int64_t lowest_ = 0, highest_ = 0;
};

// Says yes if two elements may lie in one place: an axis takes no step beyond all that the finer axes reach.
bool Region::overlaps_itself() const
{
    struct Axis {
        int64_t step, length;
    };
    Axis axes[YOKE_MAX_NDIM];
    int count = 0;
    for (int i = 0; i < shape_.size(); ++i) {
        if (shape_[i] == 0) return false;
        if (shape_[i] > 1) axes[count++] = {std::abs(strides_[i]), shape_[i]};
    }
    std::sort(axes, axes + count, [](const Axis &a, const Axis &b) { return a.step < b.step; });
    int64_t reach = 0;
    for (int i = 0; i < count; ++i) {
        if (axes[i].step <= reach) return true;
        reach += axes[i].step * (axes[i].length - 1);
    }
    return false;
}

Tensor Region::spread(const Tensor &gradient) const
{
    if (!overlaps_itself()) {
        const Tensor whole = zeros();
        ops::copy_(of(whole), gradient);
        return whole;
    }
    const int64_t count = extent();
    const Tensor numbers = in_line(ops::arange(int64_t{0}, count, int64_t{1}, YOKE_I64, &device_));
    const Tensor places = ops::reshape(of(numbers), Dims{-1});
    yoke_tensor *const indices[] = {places.get()};
    const Tensor line = ops::zeros(Dims{count}, dtype_, &device_);
    return in_line(ops::index_put(line, indices, ops::reshape(gradient, Dims{-1}), true));
}

// ---- Nodes ---------------------------------------------------------------------------------------------------

Edge edge_to(const yoke_tensor &x)
{
    return x.requires_grad() ? Edge{Ref<Node>::share(node_of(x)), x.output_index} : Edge{};
}

// Node of a view whose base a recorded op has changed since the view was taken.
class RegionView final : public Node {
public:
    RegionView(const yoke_tensor &base, const yoke_tensor &view)
        : region_(base, view), base_(edge_to(base))
    {
    }
    const char *name() const noexcept override { return "view"; }
    std::span<const Edge> edges() const noexcept override { return {&base_, 1}; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override
    {
        if (gradients[0].present()) out[0] = region_.spread(gradients[0]);
    }

private:
    const Region region_;
    const Edge base_;
};

// Node of a base of whose elements a recorded op has changed those of a view.
class RegionWrite final : public Node {
public:
    RegionWrite(const yoke_tensor &base, const yoke_tensor &view, Edge written)
        : region_(base, view), edges_{edge_to(base), std::move(written)}
    {
    }
    const char *name() const noexcept override
    {
        return edges_[1].node.present() ? edges_[1].node->name() : "fill_";
    }
    std::span<const Edge> edges() const noexcept override { return edges_; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override;

private:
    const Region region_;
    const Edge edges_[2];  // what the base was before; what was written
};

void RegionWrite::backward(std::span<Tensor> gradients, std::span<Tensor> out)
{
    Tensor whole = std::move(gradients[0]);
    if (!whole.present()) return;
    const bool goes_on = edges_[0].node.present();
    if (goes_on && region_.lies_alike(*whole)) whole = own_gradient(std::move(whole));
    if (!region_.lies_alike(*whole)) whole = region_.laid_out(whole);
    const Tensor part = region_.of(*whole);
    if (edges_[1].node.present()) out[1] = ops::clone(part);
    if (!goes_on) return;
    ops::fill_(part, int64_t{0});
    out[0] = std::move(whole);
}

std::mutex &renewal_mutex()
{
    static std::mutex mutex;
    return mutex;
}

uint32_t rewrites_of(const yoke_tensor &x)
{
    return x.storage->rewrites.load(std::memory_order_relaxed);
}

bool is_stale(const yoke_tensor &x)
{
    const std::atomic_ref<uint32_t> seen(const_cast<yoke_tensor &>(x).node_rewrites);
    return x.storage.present() && rewrites_of(x) != seen.load(std::memory_order_acquire);
}

}  // namespace

yoke_tensor *base_of(const yoke_tensor &x) noexcept
{
    yoke_tensor *base = x.base.get();
    return base && base->storage.get() == x.storage.get() ? base : nullptr;
}

void check_written_view(const char *call, const char *arg, const yoke_tensor &x)
{
    if (!x.is_view) return;
    const yoke_tensor *base = base_of(x);
    if (!base)
        fail(
            YOKE_E_UNSUPPORTED,
            "%s: '%s' is a view that was taken under no_grad, or an output of a wrapped module, and a gradient would have to flow through its base; take the view again without no_grad, or use an op that returns a new tensor",
            call, arg);
    if (Region(*base, x).overlaps_itself())
        fail(
            YOKE_E_UNSUPPORTED,
            "%s: '%s' is a view of shape %s and strides %s, which shows elements of memory twice, and is to get a gradient; clone() it first",
            call, arg, to_string(x.shape()).c_str(), to_string(x.strides()).c_str());
}

void renew_view(const char *call, const yoke_tensor &x)
{
    if (!x.is_view || !is_stale(x)) return;
    Ref<RefCounted> former;  // released without the lock: hooks on it end with code of the program
    const std::lock_guard lock(renewal_mutex());
    const Node *node = node_of(x);
    if (!is_stale(x) || (node && node->is_leaf())) return;
    const yoke_tensor *base = base_of(x);
    if (!base) {
        const char *writer = x.storage->last_writer();
        fail(
            YOKE_E_STATE,
            "%s: the tensor %s is a view%s of memory that %s has changed in place since, in a recorded op; create the view again",
            call, describe(x).c_str(), node ? format(" (by %s)", node->name()).c_str() : "",
            writer ? writer : "the host");
    }
    auto &view = const_cast<yoke_tensor &>(x);
    Ref<Node> renewed;
    if (base->requires_grad()) renewed = Ref<Node>::adopt(new RegionView(*base, x));
    move_retained(x, renewed.get(), 0);
    former = std::exchange(view.node, Ref<RefCounted>(std::move(renewed)));
    view.output_index = 0;
    // Last: a thread that sees this number uses the node without the lock.
    std::atomic_ref(view.node_rewrites).store(rewrites_of(x), std::memory_order_release);
}

void record_write(yoke_tensor &x, Ref<Node> node, uint32_t index)
{
    yoke_tensor *base = base_of(x);
    Ref<Node> of_base;
    if (base) of_base = Ref<Node>::adopt(new RegionWrite(*base, x, Edge{node, index}));
    x.storage->rewrites.fetch_add(1, std::memory_order_relaxed);
    move_retained(x, node.get(), index);
    set_node(x, std::move(node), index);
    x.frozen = false;
    if (!base) return;
    move_retained(*base, of_base.get(), 0);
    set_node(*base, std::move(of_base), 0);
    base->frozen = false;
}

}  // namespace yoke
