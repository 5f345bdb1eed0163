// gather, scatter and scatter_add: elements by an index along one axis; the other coordinates stay the same.
//
// Two elements of a scatter meet only if all their other coordinates agree: along a line of the axis. Lines are
// divided among the team or, if there are too few lines, the places of a line. In both cases, elements of one place
// are added or written in the order of the index, for any number of threads.
#include "kernels/cpu/simd/indices.h"

YOKE_SIMD_BEGIN

template <class T, class I>
static void gather_elements(const Loop<3> &loop, int64_t step, int64_t length)
{
    parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
        walk<3>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
            for (int64_t i = 0; i < n; i++) {
                int64_t at = kernels::resolved(*(const I *)(data[1] + i * stride[1]), length);
                *(T *)(data[0] + i * stride[0]) = *(const T *)(data[2] + i * stride[2] + at * step);
            }
        });
    });
}

YOKE_KERNEL(gather)
{
    const yoke_operand &x = launch->operands[0], &index = launch->operands[1],
                       &out = launch->operands[2];
    int axis = (int)launch->params[0].v.i;
    int64_t length = axis_length(x, axis);
    if (yoke_status status = check_indices(launch, {index, "index", length, false})) return status;
    Loop<3> loop;
    kernels::plan_elements<3>(loop, {&out, &index, &x}, index, axis, 2);
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        return for_index_dtype(launch, "index", index.dtype, [&]<class I>() {
            gather_elements<T, I>(loop, axis_step(x, axis), length);
            return (yoke_status)YOKE_OK;
        });
    });
}

// Functor by which a scatter puts an element of src at its place, which is a To.
template <class T, class K>
struct Add {
    using To = K;
    static constexpr bool kHasDenseLoop = std::is_same_v<T, float> || std::is_same_v<T, int64_t>;
    static void one(char *to, const char *from) { add_to<T, K>(to, from); }
};

template <class T>
struct Set {
    using To = T;
    static constexpr bool kHasDenseLoop = true;
    static void one(char *to, const char *from) { *(T *)to = *(const T *)from; }
};

// Work along lines, F for each element. The operands are the result, index (I) and src.
template <class I, class F>
struct Scatter {
    Loop<3> lines;     // all axes but the one of the index
    int64_t count;     // elements of a line
    int64_t length;    // places of a line
    int64_t out_step;  // bytes from one place to the next
    int64_t steps[3];  // bytes from one element of a line to the next; of the result 0

    // Does lines [begin, end), element by element: for lines whose own elements are neighbours.
    void by_lines(int64_t begin, int64_t end) const
    {
        Cursor<3> line(lines, begin);
        for (; begin < end; begin++, line.advance(lines, 0, 1))
            do_line(line.data[0], line.data[1], line.data[2]);
    }

    void do_line(char *to, const char *index, const char *from) const
    {
        const int64_t n = count, step = out_step, of_index = steps[1], of_src = steps[2];
        if constexpr (F::kHasDenseLoop) {
            if (step == sizeof(typename F::To) && of_index == sizeof(I)) {
                for (int64_t i = 0; i < n; i++, from += of_src)
                    F::one((char *)((typename F::To *)to + ((const I *)index)[i]), from);
                return;
            }
        }
        for (int64_t i = 0; i < n; i++)
            F::one(to + *(const I *)(index + i * of_index) * step, from + i * of_src);
    }

    // Does lines [begin, end) side by side: for lines that are neighbours of each other.
    void by_planes(int64_t begin, int64_t end) const
    {
        Loop<3> plane = lines;
        for (int64_t i = 0; i < count; i++) {
            for (int k = 1; k < 3; k++) plane.data[k] = lines.data[k] + i * steps[k];
            walk<3>(plane, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
                const int64_t step = out_step, s0 = stride[0], s1 = stride[1], s2 = stride[2];
                if constexpr (F::kHasDenseLoop) {
                    if (s0 == sizeof(typename F::To) && s1 == sizeof(I)) {
                        auto *to = (typename F::To *)data[0];
                        const I *index = (const I *)data[1];
                        const char *from = data[2];
                        for (int64_t j = 0; j < n; j++, from += s2)
                            F::one((char *)(to + j) + index[j] * step, from);
                        return;
                    }
                }
                for (int64_t j = 0; j < n; j++)
                    F::one(data[0] + j * s0 + *(const I *)(data[1] + j * s1) * step,
                           data[2] + j * s2);
            });
        }
    }

    // Does the elements of a line that go to places [first, last).
    void to_places(int64_t index, int64_t first, int64_t last) const
    {
        const Cursor<3> line(lines, index);
        for (int64_t i = 0; i < count; i++) {
            int64_t at = *(const I *)(line.data[1] + i * steps[1]);
            if (at < first || at >= last) continue;
            F::one(line.data[0] + at * out_step, line.data[2] + i * steps[2]);
        }
    }

    void run() const
    {
        // Every share reads the whole line of the index, so there are no more of them than threads.
        int64_t team = team_size();
        if (lines.numel < team && count >= kGrain) {
            int64_t share = divide_up(length, team);
            for (int64_t index = 0; index < lines.numel; index++)
                parallel_items(divide_up(length, share), [&](int64_t i) {
                    to_places(index, i * share, min(length, (i + 1) * share));
                });
            return;
        }
        int64_t along = steps[1] < 0 ? -steps[1] : steps[1];
        int64_t across = lines.stride[0][1] < 0 ? -lines.stride[0][1] : lines.stride[0][1];
        bool neighbours = lines.numel > 1 && across < along;
        parallel_range(lines.numel, max(1, kGrain / max(1, count)),
                       [&](int64_t begin, int64_t end) {
                           neighbours ? by_planes(begin, end) : by_lines(begin, end);
                       });
    }
};

template <class I, class F>
static void scatter(const yoke_operand &out, const yoke_operand &index, const yoke_operand &src,
                    int axis)
{
    Scatter<I, F> work{{},
                       axis_length(index, axis),
                       axis_length(out, axis),
                       axis_step(out, axis),
                       {0, axis_step(index, axis), axis_step(src, axis)}};
    kernels::plan_lines<3>(work.lines, {&out, &index, &src}, index, axis);
    work.run();
}

// Counts, by a sample of the index, how often the index names each element of `out`.
static yoke_status count_elements(const yoke_launch *launch, const yoke_operand &out,
                                  const yoke_operand &index, int axis, Tally &tally)
{
    if (yoke_status status = tally.start(index.numel)) return status;
    Loop<2> loop;
    kernels::plan_elements<2>(loop, {&index, &out}, index, axis, 1);
    const int64_t step = axis_step(out, axis);
    return for_index_dtype(launch, "index", index.dtype, [&]<class I>() {
        parallel_range(loop.numel, kGrain, [&](int64_t begin, int64_t end) {
            int64_t number = begin;
            walk<2>(loop, begin, end, [&](char *const *data, const int64_t *stride, int64_t n) {
                const int64_t first = data[1] - loop.data[1];
                tally.count(number, n, [=](int64_t i) {
                    const int64_t at = *(const I *)(data[0] + i * stride[0]);
                    return first + i * stride[1] + at * step;
                });
                number += n;
            });
        });
        return (yoke_status)YOKE_OK;
    });
}

YOKE_KERNEL(scatter_add)
{
    const yoke_operand &x = launch->operands[0], &index = launch->operands[1],
                       &src = launch->operands[2], &out = launch->operands[3];
    int axis = (int)launch->params[0].v.i;
    int64_t length = axis_length(x, axis);
    if (yoke_status status = check_indices(launch, {index, "index", length, false})) return status;
    Sum sum(launch, out, {index.numel, axis_length(index, axis)});
    if (sum.wants_tally()) {
        Tally tally(launch);
        if (yoke_status status = count_elements(launch, out, index, axis, tally)) return status;
        sum.take(tally);
    }
    if (yoke_status status = sum.start(x)) return status;
    if (index.numel == 0) return sum.finish();
    yoke_status status = for_any(launch, "x", x.dtype, [&]<class T>() {
        return for_index_dtype(launch, "index", index.dtype, [&]<class I>() {
            return sum.for_kept<T>([&]<class K>() {
                scatter<I, Add<T, K>>(sum.operand(), index, src, axis);
                return (yoke_status)YOKE_OK;
            });
        });
    });
    return status ? status : sum.finish();
}

YOKE_KERNEL(_scatter)
{
    const yoke_operand &x = launch->operands[0], &index = launch->operands[1],
                       &src = launch->operands[2], &out = launch->operands[3];
    const int axis = (int)launch->params[0].v.i;
    if (yoke_status status = check_indices(launch, {index, "index", axis_length(x, axis), false}))
        return status;
    if (out.data != x.data)
        if (yoke_status status = copy_operand(launch, out, x)) return status;
    if (index.numel == 0) return YOKE_OK;
    return for_size(launch, "x", dtype_size(x.dtype), [&]<class T>() {
        return for_index_dtype(launch, "index", index.dtype, [&]<class I>() {
            scatter<I, Set<T>>(out, index, src, axis);
            return (yoke_status)YOKE_OK;
        });
    });
}

YOKE_SIMD_END
