// index_select, _index and index_put: elements named by integer tensors along neighbouring axes of x.
//
// The axes of x are [before…, indexed…, behind…]. The index tensors, all of one shape, name `places` in the middle;
// each place is a block of the axes behind. Places named twice are written, or added to, in the order of the indices.
// The work is divided so that two threads never reach the same element.
#include "kernels/cpu/simd/indices.h"
#include "kernels/cpu/simd/run.h"

#include <cstring>

YOKE_SIMD_BEGIN

// The middle of an operand's axes: `count` of them from `first` on.
struct Middle {
    int first, count;
};

// Begin of each place, in bytes from the operand's first element.
class Places {
public:
    Places(const yoke_launch *launch, bool wraps) : launch_(launch), scratch_(launch), wraps_(wraps)
    {
    }
    yoke_status find(const yoke_operand &x, const yoke_operand *indices, Middle middle);
    int64_t count() const { return count_; }
    int64_t at(int64_t i) const { return offsets_[i]; }
    // Returns the lower bound of all offsets. The offsets lie in [lowest, lowest + span).
    int64_t lowest() const { return lowest_; }
    int64_t span() const { return span_; }

private:
    void add(const yoke_operand &index, const yoke_operand &x, int axis, bool first);

    const yoke_launch *launch_;
    Scratch scratch_;
    const bool wraps_;  // negative indices count from the end
    int64_t *offsets_ = nullptr;
    int64_t count_ = 0, lowest_ = 0, span_ = 1;
};

yoke_status Places::find(const yoke_operand &x, const yoke_operand *indices, Middle middle)
{
    count_ = indices[0].numel;
    if (count_ == 0) return YOKE_OK;
    if (yoke_status status = scratch_.reserve((uint64_t)count_ * sizeof(int64_t))) return status;
    offsets_ = static_cast<int64_t *>(scratch_.data());
    for (int i = 0; i < middle.count; i++) {
        int axis = middle.first + i;
        if (yoke_status status = check_indices(
                launch_, {indices[i], wraps_ ? "the index" : "index", x.shape[axis], wraps_}))
            return status;
        add(indices[i], x, axis, i == 0);
        int64_t reach = (x.shape[axis] - 1) * axis_step(x, axis);
        lowest_ += min(reach, 0);
        span_ += max(reach, -reach);
    }
    return YOKE_OK;
}

void Places::add(const yoke_operand &index, const yoke_operand &x, int axis, bool first)
{
    int64_t strides[YOKE_MAX_NDIM], length = x.shape[axis], step = axis_step(x, axis);
    const yoke_operand offsets = row_major(index, offsets_, YOKE_I64, strides);
    for_index_dtype(launch_, "index", index.dtype, [&]<class I>() {
        Loop<2> loop;
        plan_loop<2>(loop, {&offsets, &index});
        parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
            walk<2>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
                for (int64_t i = 0; i < n; i++) {
                    int64_t *offset = (int64_t *)(data[0] + i * stride[0]);
                    int64_t at = kernels::resolved(*(const I *)(data[1] + i * stride[1]), length);
                    *offset = at * step + (first ? 0 : *offset);
                }
            });
        });
        return (yoke_status)YOKE_OK;
    });
}

// Plans a loop over axes [first, last) of x in row-major order, beside the axes of `out`, which are `shift` further
// on.
static Loop<2> axes_of(const yoke_operand &out, const yoke_operand &x, int first, int last,
                       int shift)
{
    Loop<2> loop;
    kernels::begin_loop<2>(loop, {&out, &x});
    for (int axis = last - 1; axis >= first; axis--)
        add_axis<2>(loop, x.shape[axis], {axis_step(out, axis + shift), axis_step(x, axis)});
    if (loop.ndim == 0) finish_loop<2>(loop);
    return loop;
}

// ---- _index -----------------------------------------------------------------------------------------------------

template <class T>
static void copy_block(const Loop<2> &block)
{
    walk<2>(block, 0, block.numel, [](char *const *data, const int64_t *stride, int64_t n) {
        copy_run(data, stride, n, sizeof(T));
    });
}

// Writes a row-major result: its rows are the blocks, a block for each place of each `before`.
template <class T>
static void index_rows(const yoke_operand &x, const yoke_operand &out, const Places &places,
                       Middle middle, int index_ndim)
{
    const Loop<2> before = axes_of(out, x, 0, middle.first, 0);
    Loop<2> behind =
        axes_of(out, x, middle.first + middle.count, x.ndim, index_ndim - middle.count);
    finish_loop<2>(behind);
    int64_t row_bytes = behind.numel * (int64_t)sizeof(T);
    parallel_range(before.numel * places.count(), max(1, kGrain / max(1, behind.numel)),
                   [&](int64_t begin, int64_t end) {
                       Cursor<2> outer(before, begin / places.count());
                       int64_t place = begin % places.count();
                       Loop<2> block = behind;
                       for (int64_t row = begin; row < end; row++) {
                           block.data[0] = data_of<char>(out) + row * row_bytes;
                           block.data[1] = outer.data[1] + places.at(place);
                           if (behind.numel == 1)
                               *(T *)block.data[0] = *(const T *)block.data[1];
                           else
                               copy_block<T>(block);
                           if (++place == places.count()) place = 0, outer.advance(before, 0, 1);
                       }
                   });
}

static yoke_status index(const yoke_launch *launch, bool wraps)
{
    const yoke_operand &x = launch->operands[0], *indices = launch->operands + 1;
    const Middle middle = {(int)launch->params[0].v.i, launch->operand_count - 2};
    const yoke_operand &out = indices[middle.count];
    Places places(launch, wraps);
    if (yoke_status status = places.find(x, indices, middle)) return status;
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        index_rows<T>(x, out, places, middle, indices[0].ndim);
        return (yoke_status)YOKE_OK;
    });
}

YOKE_KERNEL(_index)
{
    return index(launch, true);
}

YOKE_KERNEL(index_select)
{
    return index(launch, false);
}

// ---- index_put --------------------------------------------------------------------------------------------------

template <class T>
struct Write {
    void one(char *to, const char *from) const { *(T *)to = *(const T *)from; }
    void operator()(char *const *data, const int64_t *stride, int64_t n) const
    {
        copy_run(data, stride, n, sizeof(T));
    }
};

template <class T, class K>
struct AddTo {
    void one(char *to, const char *from) const { add_to<T, K>(to, from); }
    void operator()(char *const *data, const int64_t *stride, int64_t n) const
    {
        for (int64_t i = 0; i < n; i++)
            add_to<T, K>(data[0] + i * stride[0], data[1] + i * stride[1]);
    }
};

// Writes, by index: the operands are the result and the values. The values broadcast to [before…, indices…, behind…].
struct Put : kernels::IndexedBlocks {
    const Places &places;

    Put(const yoke_operand &to, const yoke_operand &from, const yoke_operand &index,
        const Places &where, Middle middle)
        : IndexedBlocks(to, from, middle.first, middle.count, index, true), places(where)
    {
    }

    // Work of a thread: elements [begin, end) of each block, at places with an offset in [low, high).
    struct Share {
        int64_t first_before, last_before, begin, end, low, high;
    };

    // Runs a share whose blocks are single elements.
    template <class F>
    void run_elements(const F &f, const Share &share) const
    {
        Cursor<2> outer(before, share.first_before);
        for (int64_t o = share.first_before; o < share.last_before; o++) {
            int64_t i = 0;
            char *to = outer.data[0], *from = outer.data[1];
            walk<1>(entries, 0, places.count(),
                    [&](char *const *data, const int64_t *stride, int64_t n) {
                        const char *value = from + (data[0] - entries.data[0]);
                        for (int64_t k = 0; k < n; k++, value += stride[0]) {
                            const int64_t offset = places.at(i++);
                            if (offset >= share.low && offset < share.high)
                                f.one(to + offset, value);
                        }
                    });
            outer.advance(before, 0, 1);
        }
    }

    template <class F>
    void run_share(const F &f, const Share &share) const
    {
        if (behind.numel == 1) return run_elements(f, share);
        Loop<2> block = behind;
        Cursor<2> outer(before, share.first_before);
        for (int64_t o = share.first_before; o < share.last_before; o++) {
            Cursor<1> value(entries, 0);
            for (int64_t i = 0; i < places.count(); i++, value.advance(entries, 0, 1)) {
                int64_t offset = places.at(i);
                if (offset < share.low || offset >= share.high) continue;
                block.data[0] = outer.data[0] + offset;
                block.data[1] = outer.data[1] + (value.data[0] - entries.data[0]);
                walk<2>(block, share.begin, share.end, f);
            }
            outer.advance(before, 0, 1);
        }
    }

    // Calls f for all blocks, by the team. Divides the axes before, or the blocks, or the range of offsets: the first
    // of these that gives each thread some work. The last way reads all places once a share, so it has no more shares
    // than threads.
    template <class F>
    void run(const F &f) const
    {
        int64_t low = places.lowest(), span = places.span(), team = team_size();
        int64_t work = before.numel * places.count() * behind.numel;
        if (work == 0) return;
        if (work < 2 * kGrain || team == 1)
            return run_share(f, {0, before.numel, 0, behind.numel, low, low + span});
        if (before.numel >= team)
            return parallel_range(before.numel, 1, [&](int64_t first, int64_t last) {
                run_share(f, {first, last, 0, behind.numel, low, low + span});
            });
        if (behind.numel >= 256 * team)
            return parallel_range(behind.numel, 128, [&](int64_t begin, int64_t end) {
                run_share(f, {0, before.numel, begin, end, low, low + span});
            });
        int64_t share = divide_up(span, team);
        parallel_items(divide_up(span, share), [&](int64_t i) {
            run_share(f, {0, before.numel, 0, behind.numel, low + i * share,
                          low + min(span, (i + 1) * share)});
        });
    }
};

static yoke_status copy_unless_same(const yoke_launch *launch, const yoke_operand &out,
                                    const yoke_operand &x)
{
    return out.data == x.data ? (yoke_status)YOKE_OK : copy_operand(launch, out, x);
}

// Returns how many additions index_put makes: the values broadcast to a block of x for each place.
static Additions additions_of(const yoke_operand &x, const yoke_operand &index, Middle middle)
{
    int64_t named = 1;
    for (int i = 0; i < middle.count; i++) named *= x.shape[middle.first + i];
    return {index.numel * (x.numel / max(named, 1)), index.numel};
}

// Counts, by a sample, how often the indices name each place.
static yoke_status count_places(const Places &places, Tally &tally)
{
    if (yoke_status status = tally.start(places.count())) return status;
    parallel_range(places.count(), kGrain, [&](int64_t begin, int64_t end) {
        tally.count(begin, end - begin, [&](int64_t i) { return places.at(begin + i); });
    });
    return YOKE_OK;
}

// Parameters: whether values are added, the first indexed axis, and whether negative indices count from the end.
YOKE_KERNEL(index_put)
{
    const yoke_operand &x = launch->operands[0], *indices = launch->operands + 1;
    const Middle middle = {(int)launch->params[1].v.i, launch->operand_count - 3};
    const yoke_operand &values = indices[middle.count], &out = indices[middle.count + 1];
    const bool accumulate = launch->params[0].v.i != 0, wraps = launch->params[2].v.i != 0;
    Places places(launch, wraps);
    if (!accumulate) {
        if (yoke_status status = places.find(out, indices, middle)) return status;
        if (yoke_status status = copy_unless_same(launch, out, x)) return status;
        return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
            Put(out, values, indices[0], places, middle).run(Write<T>());
            return (yoke_status)YOKE_OK;
        });
    }
    Sum sum(launch, out, additions_of(out, indices[0], middle));
    const bool tallies = sum.wants_tally();
    if (tallies) {
        Tally tally(launch);
        if (yoke_status status = places.find(out, indices, middle)) return status;
        if (yoke_status status = count_places(places, tally)) return status;
        sum.take(tally);
    }
    // Places are found, and indices refused, before a value of x changes: sum may be x itself.
    if (yoke_status status = sum.start(x)) return status;
    Places in_copy(launch, wraps);
    const bool is_found = tallies && sum.operand().data == out.data;
    const Places &named = is_found ? places : in_copy;
    if (!is_found)
        if (yoke_status status = in_copy.find(sum.operand(), indices, middle)) return status;
    yoke_status status = for_any(launch, "x", x.dtype, [&]<class T>() {
        return sum.for_kept<T>([&]<class K>() {
            Put(sum.operand(), values, indices[0], named, middle).run(AddTo<T, K>());
            return (yoke_status)YOKE_OK;
        });
    });
    return status ? status : sum.finish();
}

YOKE_SIMD_END
