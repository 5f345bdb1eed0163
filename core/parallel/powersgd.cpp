#include "core/parallel/powersgd.h"

#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/parallel/powersgd_math.h"
#include "core/parallel/powersgd_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace yoke {

namespace {

// Matrices of a single shape that are neighbours in a bucket.
struct Batch {
    size_t first = 0;  // index of the first matrix in the bucket
    int64_t count = 0;
    Tensor matrices,
        errors;    // views of the bucket's memory and of its errors: [count, rows, columns]
    Tensor q;      // [count, columns, rank]
    Tensor fresh;  // first q; also replaces a column of q that becomes 0
    // Values within a step: p is [count, rows, rank], next_q is shaped like q, holds_all: the errors contain the
    // matrices.
    Tensor p, next_q;
    bool holds_all = false;
};

struct Compressed {
    Tensor errors;  // laid out as the bucket's memory
    std::vector<Batch> batches;
    std::vector<Tensor> plain;  // views of the bucket that are sent uncompressed
    Tensor together;            // `plain` in a single tensor, within a step
};

// Returns a view of a batch with only this matrix; the view has the axes of a batch.
Tensor one_of(const yoke_tensor &all, int64_t number)
{
    const auto size = all.shape(), step = all.strides();
    const int64_t shape[] = {1, size[1], size[2]}, strides[] = {step[0], step[1], step[2]};
    return make_view(all, shape, strides, number * step[0]);
}

class PowerSgd final : public Compression {
public:
    PowerSgd(PowerSgdOptions options, Ref<Group> group)
        : options_(options), group_(std::move(group))
    {
    }
    void begin(Bucket &bucket, size_t index, bool is_last) override;
    void go_on(Bucket &bucket, size_t index) override;
    void end(Bucket &bucket, size_t index) override;
    void keep(const Bucket &bucket, size_t index, size_t view) override;
    void abandon() noexcept override;
    void lay_out(const std::vector<Bucket> &buckets,
                 const std::vector<std::string> &names) override;
    CompressionState state() const override;
    void load(const CompressionState &state) override;
    std::string text() const override { return text_of(options_); }

private:
    int64_t rank_of(const yoke_tensor &view) const;
    bool is_worth(const yoke_tensor &view) const;
    bool compresses() const { return steps_ >= options_.start; }
    void prepare();
    Compressed prepared(const Bucket &bucket);
    void place(const Bucket &bucket, const Tensor &errors, Batch &batch) const;
    void draw(const Bucket &bucket, Batch &batch) const;
    void fill(const Bucket &bucket, const Compressed &compressed) const;
    void put_out_of(Batch &batch);
    void send_plain(Compressed &compressed, size_t index);

    const PowerSgdOptions options_;
    const Ref<Group> group_;
    detail::Works works_;
    int64_t steps_ = 0;
    std::vector<Bucket> laid_;
    std::vector<std::string> names_;   // names of all parameters
    std::vector<Compressed> buckets_;  // empty before the first compressing step
    CompressionState known_;           // initial values of `buckets_`
};

// ---- Compressed parameters --------------------------------------------------------------------------------------

// Returns the rank for a matrix: the option's, but at most the matrix's rows and columns.
int64_t PowerSgd::rank_of(const yoke_tensor &view) const
{
    const int64_t rows = view.shape()[0];
    return std::min({options_.rank, rows, view.numel / rows});
}

bool PowerSgd::is_worth(const yoke_tensor &view) const
{
    const bool is_wide = view.dtype == YOKE_F32 || view.dtype == YOKE_F64;
    if (!is_wide || view.shape().size() < 2 || view.numel == 0) return false;
    const int64_t rows = view.shape()[0], columns = view.numel / rows;
    return static_cast<double>((rows + columns) * rank_of(view)) * options_.rate <
           static_cast<double>(view.numel);
}

void PowerSgd::lay_out(const std::vector<Bucket> &buckets, const std::vector<std::string> &names)
{
    known_ = state();
    laid_ = buckets;
    names_ = names;
    buckets_.clear();
}

void PowerSgd::prepare()
{
    if (!buckets_.empty()) return;
    for (const Bucket &each : laid_) {
        buckets_.push_back(prepared(each));
        fill(each, buckets_.back());
    }
    known_.tensors.clear();
}

// Returns a bucket's matrices in batches, and the views that are sent uncompressed. A batch joins neighbouring
// matrices of the same shape; the plan of a bucket makes equal shapes neighbours.
Compressed PowerSgd::prepared(const Bucket &bucket)
{
    Compressed made;
    made.errors = ops::zeros_like(*bucket.memory);
    for (size_t i = 0; i < bucket.views.size(); ++i) {
        const Tensor &view = bucket.views[i];
        if (!is_worth(*view)) {
            made.plain.push_back(view);
            continue;
        }
        const bool goes_on =
            i > 0 && !made.batches.empty() &&
            made.batches.back().first + static_cast<size_t>(made.batches.back().count) == i &&
            same(view->shape(), bucket.views[i - 1]->shape());
        if (!goes_on) {
            Batch &begun = made.batches.emplace_back();
            begun.first = i;
        }
        ++made.batches.back().count;
    }
    for (Batch &each : made.batches) place(bucket, made.errors, each);
    return made;
}

// Makes the views of a batch in the bucket and in the errors, and draws its first q. The matrices are as far apart as
// in the bucket.
void PowerSgd::place(const Bucket &bucket, const Tensor &errors, Batch &batch) const
{
    const yoke_tensor &first = *bucket.views[batch.first];
    const int64_t rows = first.shape()[0], columns = first.numel / rows;
    const auto offset_of = [&](size_t i) {
        const auto *begin =
            static_cast<const char *>(static_cast<const void *>(bucket.memory->data));
        const auto *at =
            static_cast<const char *>(static_cast<const void *>(bucket.views[i]->data));
        return (at - begin) / static_cast<int64_t>(item_size(first.dtype));
    };
    const int64_t offset = offset_of(batch.first);
    const int64_t apart = batch.count > 1 ? offset_of(batch.first + 1) - offset : rows * columns;
    const int64_t shape[] = {batch.count, rows, columns}, strides[] = {apart, columns, 1};
    batch.matrices = make_view(*bucket.memory, shape, strides, offset);
    batch.errors = make_view(*errors, shape, strides, offset);
    draw(bucket, batch);
}

// Draws the first q of each matrix from a seed per parameter, so the batches do not change the values.
void PowerSgd::draw(const Bucket &bucket, Batch &batch) const
{
    const yoke_tensor &first = *bucket.views[batch.first];
    const int64_t columns = first.numel / first.shape()[0];
    const int64_t all[] = {batch.count, columns, rank_of(first)}, one[] = {columns, rank_of(first)};
    batch.fresh = make_tensor(*first.device, first.dtype, all, kDdpCall);
    for (int64_t k = 0; k < batch.count; ++k)
        ops::copy_(*make_view(*batch.fresh, one, nullptr, k * batch.fresh->strides()[0]),
                   *normal_numbers(*first.device, first.dtype, {columns, rank_of(first)},
                                   bucket.params[batch.first + static_cast<size_t>(k)]));
    batch.q = ops::clone(*batch.fresh);
}

// ---- A step -----------------------------------------------------------------------------------------------------

// Begins a bucket: sends the mean of p for each batch, and the other views uncompressed. Before the first compressing
// step, sends the whole bucket uncompressed. take_in adds the matrices to the errors of earlier steps, so the errors
// then hold all of the matrices.
void PowerSgd::begin(Bucket &bucket, size_t index, bool)
{
    if (!compresses()) return works_.add(index, group_->run(detail::mean_of(bucket.memory), true));
    prepare();
    Compressed &compressed = buckets_[index];
    for (Batch &each : compressed.batches) {
        orthogonalize(each.q, each.fresh);
        each.p = take_in(each.errors, each.matrices, each.q);
        each.holds_all = true;
        works_.add(index, group_->run(detail::mean_of(each.p), true));
    }
    send_plain(compressed, index);
}

void PowerSgd::send_plain(Compressed &compressed, size_t index)
{
    if (compressed.plain.empty()) return;
    std::vector<Tensor> flat;
    std::vector<yoke_tensor *> list;
    for (const Tensor &each : compressed.plain) {
        const int64_t shape[] = {each->numel};
        flat.push_back(make_view(*each, shape, nullptr, 0));
        list.push_back(flat.back().get());
    }
    compressed.together = ops::cat(list);
    works_.add(index, group_->run(detail::mean_of(compressed.together), true));
}

void PowerSgd::go_on(Bucket &, size_t index)
{
    if (!compresses()) return;
    works_.wait(index);
    for (Batch &each : buckets_[index].batches) {
        orthogonalize(each.p, nullptr);
        each.next_q = ops::matmul(*transposed(each.errors), *each.p);
        works_.add(index, group_->run(detail::mean_of(each.next_q), true));
    }
}

void PowerSgd::end(Bucket &, size_t index)
{
    for (size_t i = index; i < laid_.size(); ++i) works_.wait(i);
    if (compresses()) {
        Compressed &compressed = buckets_[index];
        for (Batch &each : compressed.batches) {
            put_out_of(each);
        }
        int64_t offset = 0;
        for (const Tensor &each : compressed.plain) {
            ops::copy_(*each, *make_view(*compressed.together, each->shape(), nullptr, offset));
            offset += each->numel;
        }
        compressed.together = {};
    }
    if (index + 1 == laid_.size()) ++steps_;
}

// Adds the mean back to the errors, because no leaf receives this mean.
void PowerSgd::keep(const Bucket &bucket, size_t index, size_t view)
{
    if (index >= buckets_.size()) return;
    for (const Batch &each : buckets_[index].batches)
        if (view >= each.first && view < each.first + static_cast<size_t>(each.count) &&
            is_finite(*bucket.views[view])) {
            const int64_t number = static_cast<int64_t>(view - each.first);
            ops::add_(*one_of(*each.errors, number), *one_of(*each.matrices, number));
        }
}

// Writes the mean of a batch into its matrices, and takes the mean out of the errors. A gradient that is not finite,
// for example from a too large loss scale, spoils this step of its matrix alone. All ranks see the same values, and
// the state keeps no trace of them.
void PowerSgd::put_out_of(Batch &batch)
{
    const Tensor q = std::exchange(batch.next_q, {}), p = std::exchange(batch.p, {});
    if (is_finite(*q)) {
        put_out(batch.errors, batch.matrices, p, q);
    } else {
        for (int64_t k = 0; k < batch.count; ++k) {
            const Tensor error = one_of(*batch.errors, k), matrix = one_of(*batch.matrices, k),
                         of_q = one_of(*q, k);
            if (is_finite(*of_q)) {
                put_out(error, matrix, one_of(*p, k), of_q);
                continue;
            }
            ops::fill_(*matrix, std::numeric_limits<double>::quiet_NaN());
            ops::fill_(*error, 0.0);
            ops::copy_(*of_q, *one_of(*batch.q, k));
        }
    }
    batch.q = q;
    batch.holds_all = false;
}

// Waits for the calls of a failed step, and takes the step out of the errors. Buckets end together, so either all
// errors belong to the step, or no errors do.
void PowerSgd::abandon() noexcept
try {
    works_.abandon();
    for (Compressed &compressed : buckets_)
        for (Batch &each : compressed.batches) {
            if (!std::exchange(each.holds_all, false)) continue;
            ops::sub_(*each.errors, *each.matrices);
            if (!is_finite(*each.errors)) ops::fill_(*each.errors, 0.0);
        }
} catch (const std::exception &) {  // no memory: the errors keep too much
}

// ---- State for another process ----------------------------------------------------------------------------------

// Calls visit with the name, the error and the q of each compressed parameter.
template <class Visit>
void each_compressed(const std::vector<Bucket> &laid, const std::vector<std::string> &names,
                     const std::vector<Compressed> &buckets, const Visit &visit)
{
    for (size_t i = 0; i < buckets.size(); ++i)
        for (const Batch &batch : buckets[i].batches)
            for (int64_t k = 0; k < batch.count; ++k) {
                const size_t at = batch.first + static_cast<size_t>(k);
                const auto q = batch.q->shape();
                const int64_t of_q[] = {q[1], q[2]};
                visit(names[laid[i].params[at]],
                      make_view(*batch.errors, laid[i].views[at]->shape(), nullptr,
                                k * batch.errors->strides()[0]),
                      make_view(*batch.q, of_q, nullptr, k * batch.q->strides()[0]));
            }
}

void PowerSgd::fill(const Bucket &bucket, const Compressed &compressed) const
{
    const auto take = [&](const std::string &key, const Tensor &to) {
        const auto found = known_.tensors.find(key);
        if (found != known_.tensors.end()) ops::copy_(*to, *found->second);
    };
    each_compressed({bucket}, names_, {compressed},
                    [&](const std::string &name, const Tensor &error, const Tensor &q) {
                        take("error/" + name, error);
                        take("q/" + name, q);
                    });
}

CompressionState PowerSgd::state() const
{
    CompressionState state{steps_, known_.tensors};
    each_compressed(laid_, names_, buckets_,
                    [&](const std::string &name, const Tensor &error, const Tensor &q) {
                        state.tensors["error/" + name] = ops::clone(*error);
                        state.tensors["q/" + name] = ops::clone(*q);
                    });
    return state;
}

void PowerSgd::load(const CompressionState &state)
{
    const auto view_of = [&](const std::string &name) -> const yoke_tensor * {
        for (const Bucket &bucket : laid_)
            for (size_t i = 0; i < bucket.params.size(); ++i)
                if (names_[bucket.params[i]] == name) return bucket.views[i].get();
        return nullptr;
    };
    for (const auto &[key, tensor] : state.tensors) {
        const size_t slash = key.find('/');
        const yoke_tensor *view = slash == key.npos ? nullptr : view_of(key.substr(slash + 1));
        const std::string kind = key.substr(0, slash);
        const bool fits =
            view && is_worth(*view) && tensor->dtype == view->dtype &&
            (kind == "error" ? same(tensor->shape(), view->shape())
                             : kind == "q" && tensor->shape().size() == 2 &&
                                   tensor->shape()[0] == view->numel / view->shape()[0] &&
                                   tensor->shape()[1] == rank_of(*view));
        if (!fits)
            fail(
                YOKE_E_VALUE,
                "load_comm_state: the state has '%s' of %s, which this module does not have with rank=%lld; the state belongs to another model or compression",
                key.c_str(), describe(*tensor).c_str(), static_cast<long long>(options_.rank));
    }
    steps_ = state.steps;
    buckets_.clear();
    known_ = state;
    for (auto &[key, tensor] : known_.tensors) tensor = ops::clone(*tensor);
}

}  // namespace

std::unique_ptr<Compression> make_powersgd(const std::string &options, Ref<Group> group)
{
    return std::make_unique<PowerSgd>(read_powersgd_options(options), std::move(group));
}

}  // namespace yoke
