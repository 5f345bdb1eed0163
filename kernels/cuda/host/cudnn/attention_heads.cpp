#include "kernels/cuda/host/cudnn/attention_heads.h"

#include <algorithm>
#include <iterator>

#include "core/backend/ops.inc"
#include "kernels/common/attention_call.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

namespace {

static_assert(std::size(kAttentionPlaces) == kMostAttentionPlaces);

constexpr int64_t kAligned = 8;  // elements of 16 bytes

constexpr int kBiasPlace = kMostAttentionPlaces;  // place of the bias among the strides of an axis

// Axis of heads, with the distance of neighbours in each operand, in elements.
struct Axis {
    int64_t size = 1;
    int64_t strides[kMostAttentionPlaces + 1] = {};
};

class Reader {
public:
    Reader(const yoke_launch *launch, AttentionHeads &heads) : launch_(launch), heads_(heads) {}
    AttentionFit read();

private:
    const yoke_operand &operand(int place) const
    {
        const AttentionPlace &p = kAttentionPlaces[place];
        return launch_->operands[heads_.backward ? p.backward : p.forward];
    }
    const yoke_operand &mask() const { return launch_->operands[heads_.backward ? 4 : 3]; }
    AttentionFit check_sizes() const;
    void read_sizes();
    AttentionFit read_mask();
    void read_axes();
    bool continues(const Axis &outer, const Axis &inner, bool with_keys) const;
    bool is_shared(const Axis &axis) const { return axis.strides[1] == 0 && axis.strides[2] == 0; }
    bool fold();
    bool read_strides(int place);
    void read_bias();

    const yoke_launch *launch_;
    AttentionHeads &heads_;
    Axis axes_[YOKE_MAX_NDIM];  // with more than one head, the outermost first
    int count_ = 0;
    Axis batch_, keys_, sharers_;      // the folded axes
    int64_t dense_[2][YOKE_MAX_NDIM];  // strides of copied keys and values
};

AttentionFit Reader::check_sizes() const
{
    const yoke_operand *o = launch_->operands;
    const int first = heads_.backward ? 1 : 0;  // query
    const kernels::AttentionParams params(launch_->params);
    const auto width = [&](int i) { return o[first + i].shape[o[first + i].ndim - 1]; };
    if ((o[first].dtype != YOKE_F16 && o[first].dtype != YOKE_BF16) || params.dropout != 0 ||
        !o[first].numel || !o[first + 1].numel || !o[first + 2].numel)
        return AttentionFit::kForeign;
    return width(0) % kAligned || width(2) % kAligned ? AttentionFit::kWidths : AttentionFit::kFits;
}

void Reader::read_sizes()
{
    const yoke_operand *o = launch_->operands + (heads_.backward ? 1 : 0);
    const kernels::AttentionSizes sizes(o[0], o[1], o[2]);
    const kernels::AttentionParams params(launch_->params);
    AttentionShape &s = heads_.shape;
    s.dtype = o[0].dtype;
    s.batch = 1;
    s.heads = s.key_heads = sizes.heads;  // until the axes are folded
    s.queries = sizes.queries;
    s.keys = sizes.keys;
    s.width = sizes.width;
    s.value_width = sizes.value_width;
    s.causal = params.causal;
    heads_.scale = static_cast<float>(params.scale);
    heads_.statistics = static_cast<char *>(launch_->operands[heads_.backward ? 6 : 5].data);
    for (int i = 0; i < heads_.count(); ++i) heads_.data[i] = static_cast<char *>(operand(i).data);
}

// Reads the mask, if there is a mask. On cards of 9.0, cuDNN's kernels for a masked gradient score the second half of
// the last 128 keys as 0, if only the first half exists. Then a small log-sum-exp makes NaN.
AttentionFit Reader::read_mask()
{
    AttentionShape &s = heads_.shape;
    s.has_bias = kernels::is_present(mask());
    if (!s.has_bias) return AttentionFit::kFits;
    if (!heads_.mask.read(mask(), s.dtype, s.keys)) return AttentionFit::kForeign;
    const bool is_wrong = heads_.backward && compiled_for(launch_) / 10 == 9 && s.keys % 128 == 64;
    return is_wrong ? AttentionFit::kKeyCount : AttentionFit::kFits;
}

void Reader::read_axes()
{
    const yoke_operand &query = operand(0);
    const int last = query.ndim - 2;
    const auto is_spread = [&](int place) {
        const yoke_operand &o = operand(place);
        bool found = false;
        for (int axis = 0; axis < o.ndim; ++axis)
            found = found || (o.strides[axis] == 0 && o.shape[axis] > 1);
        return found;
    };
    heads_.copies_keys = heads_.backward && (is_spread(1) || is_spread(2));
    if (heads_.copies_keys)
        for (const int place : {1, 2}) dense_strides(operand(place), dense_[place - 1]);
    for (int axis = 0; axis < last; ++axis) {
        if (query.shape[axis] == 1) continue;
        Axis &made = axes_[count_++];
        made.size = query.shape[axis];
        for (int i = 0; i < heads_.count(); ++i)
            made.strides[i] = heads_.copies_keys && (i == 1 || i == 2) ? dense_[i - 1][axis]
                                                                       : operand(i).strides[axis];
        if (heads_.shape.has_bias) made.strides[kBiasPlace] = heads_.mask.stride(axis, query.ndim);
    }
}

bool Reader::continues(const Axis &outer, const Axis &inner, bool with_keys) const
{
    for (int i = 0; i < heads_.count(); ++i)
        if ((with_keys || !kAttentionPlaces[i].is_of_keys) &&
            outer.strides[i] != inner.size * inner.strides[i])
            return false;
    return outer.strides[kBiasPlace] == inner.size * inner.strides[kBiasPlace];
}

// Folds axes into a batch of heads. The heads of query are the heads of keys times the sharers. Returns false if the
// axes' strides do not allow this.
bool Reader::fold()
{
    if (count_ && is_shared(axes_[count_ - 1])) sharers_ = axes_[--count_];
    if (count_) keys_ = axes_[--count_];
    for (; count_ > 1 && sharers_.size == 1 && continues(axes_[count_ - 1], keys_, true); --count_)
        keys_.size *= axes_[count_ - 1].size;
    if (sharers_.size > 1 && keys_.size > 1 && !continues(keys_, sharers_, false)) {
        if (count_) return false;
        std::swap(batch_, keys_);
    }
    while (count_) {
        const Axis &outer = axes_[--count_];
        if (batch_.size == 1)
            batch_ = outer;
        else if (continues(outer, batch_, true))
            batch_.size *= outer.size;
        else
            return false;
    }
    heads_.shape.batch = batch_.size;
    heads_.shape.key_heads = keys_.size;
    heads_.shape.heads = keys_.size * sharers_.size;
    return true;
}

bool Reader::read_strides(int place)
{
    const AttentionPlace &p = kAttentionPlaces[place];
    const AttentionShape &s = heads_.shape;
    const yoke_operand &o = operand(place);
    const int64_t width = p.is_of_values ? s.value_width : s.width, rows = o.shape[o.ndim - 2],
                  heads = p.is_of_keys ? s.key_heads : s.heads;
    const bool copied = heads_.copies_keys && (place == 1 || place == 2);
    HeadStrides &to = heads_.shape.*p.strides;
    to.row = rows == 1 || copied ? width : o.strides[o.ndim - 2];
    to.head = heads == 1                           ? rows * to.row
              : p.is_of_keys || sharers_.size == 1 ? keys_.strides[place]
                                                   : sharers_.strides[place];
    to.batch = s.batch == 1 ? heads * to.head : batch_.strides[place];
    const auto is_fine = [](int64_t stride) { return stride > 0 && stride % kAligned == 0; };
    return (copied || o.strides[o.ndim - 1] == 1) && is_fine(to.row) && is_fine(to.head) &&
           is_fine(to.batch) && (copied || reinterpret_cast<uintptr_t>(o.data) % 16 == 0);
}

void Reader::read_bias()
{
    AttentionShape &s = heads_.shape;
    if (!s.has_bias) return;
    const Axis &heads = sharers_.size == 1 ? keys_ : sharers_;
    const int rows = operand(0).ndim - 2;
    s.bias.row = s.queries == 1 ? 0 : heads_.mask.stride(rows, operand(0).ndim);
    s.bias.head = s.heads == 1 ? 0 : heads.strides[kBiasPlace];
    s.bias.batch = s.batch == 1 ? 0 : batch_.strides[kBiasPlace];
    heads_.bias = heads_.mask.is_copied() ? nullptr : static_cast<char *>(mask().data);
}

AttentionFit Reader::read()
{
    AttentionFit fit = check_sizes();
    if (fit == AttentionFit::kForeign) return fit;
    read_sizes();
    if (fit == AttentionFit::kFits) fit = read_mask();
    if (fit != AttentionFit::kFits) return fit;
    read_axes();
    if (!fold()) return AttentionFit::kLayout;
    for (int i = 0; i < heads_.count(); ++i)
        if (!read_strides(i)) return AttentionFit::kLayout;
    heads_.shape.statistics_alignment = alignment_of(heads_.statistics);
    read_bias();
    return AttentionFit::kFits;
}

}  // namespace

void dense_strides(const yoke_operand &like, int64_t *strides)
{
    int64_t step = 1;
    for (int axis = like.ndim - 1; axis >= 0; --axis) {
        strides[axis] = step;
        step *= like.shape[axis];
    }
}

AttentionFit AttentionHeads::read(const yoke_launch *launch)
{
    *this = {};
    backward = launch->op == YOKE_OP__ATTENTION_BACKWARD;
    deterministic = !(launch->flags & YOKE_LAUNCH_CUDNN_NONDETERMINISTIC);
    return Reader(launch, *this).read();
}

int64_t AttentionHeads::reach() const
{
    int64_t most = 0;
    for (int i = 0; i < count(); ++i) {
        const AttentionPlace &p = kAttentionPlaces[i];
        const HeadStrides &strides = shape.*p.strides;
        const int64_t of_heads = p.is_of_keys ? shape.key_heads : shape.heads,
                      of_rows = p.is_of_keys ? shape.keys : shape.queries;
        most = std::max(most, (shape.batch - 1) * strides.batch + (of_heads - 1) * strides.head +
                                  of_rows * strides.row);
    }
    if (shape.has_bias)
        most = std::max(most, (shape.batch - 1) * shape.bias.batch +
                                  (shape.heads - 1) * shape.bias.head +
                                  (shape.queries - 1) * shape.bias.row + shape.keys);
    return most;
}

AttentionHeads AttentionHeads::part(int64_t batch, int64_t batches, int64_t head,
                                    int64_t of_keys) const
{
    const int64_t sharers = shape.heads / shape.key_heads;
    AttentionHeads made = *this;
    made.shape.batch = batches;
    made.shape.key_heads = of_keys;
    made.shape.heads = of_keys * sharers;
    for (int i = 0; i < count(); ++i) {
        const HeadStrides &strides = shape.*kAttentionPlaces[i].strides;
        const int64_t first = kAttentionPlaces[i].is_of_keys ? head : head * sharers;
        if (data[i]) made.data[i] = data[i] + 2 * (batch * strides.batch + first * strides.head);
    }
    made.bias_offset += batch * shape.bias.batch + head * sharers * shape.bias.head;
    made.shape.bias_alignment = alignment_of(made.bias_address());
    made.statistics += (batch * shape.heads + head * sharers) * shape.queries * 4;
    made.shape.statistics_alignment = alignment_of(made.statistics);
    return made;
}

}  // namespace yoke::cuda
