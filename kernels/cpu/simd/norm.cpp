// layer_norm and rms_norm over the last axes, and their gradients: one pass over memory, a row at a time. Gradients of
// weight and bias come in two stages: sums over fixed runs of rows, then their sum in order.
#include "kernels/common/norm.h"

#include "kernels/common/norm_call.h"
#include "kernels/cpu/simd/norm_rows.h"

YOKE_SIMD_BEGIN

constexpr int64_t kNormGrain = 8192;   // elements below which rows stay in the calling thread
constexpr int64_t kRowItems = 64;      // at most so many runs of rows
constexpr int64_t kLeastRowItem = 16;  // rows in each, at least

// A parameter of n elements as a dense row of C, `value` throughout if it is absent.
template <class T>
static void gather_parameter(const yoke_operand &p, int64_t n, compute_type<T> value,
                             compute_type<T> *to)
{
    using C = compute_type<T>;
    if (!is_present(p)) {
        for (int64_t i = 0; i < n; i++) to[i] = value;
        return;
    }
    NormRows<1> row({&p}, 0);
    char *at[1] = {row.outer.data[0]};
    gather_norm_rows<T, C, 1>(row, 0, at, 1, to);
}

template <class C>
static void apply_row(const C *x, kernels::Normal<C> normal, const C *weight, const C *bias, C *out,
                      int64_t n, bool far)
{
    if (weight)
        finish_row(
            out, x, n, far, [=](int64_t i) __attribute__((always_inline)) {
                out[i] = normal(x[i]) * weight[i] + bias[i];
            });
    else
        finish_row(
            out, x, n,
            far, [=](int64_t i) __attribute__((always_inline)) { out[i] = normal(x[i]); });
}

// Rows [begin, end) of the team's share, with the status of a buffer that could not be allocated.
static yoke_status row_status(const yoke_launch *launch, bool failed, int64_t length)
{
    if (!failed) return YOKE_OK;
    return fail(YOKE_E_OOM, "%s: no memory for rows of %lld elements", op_name(launch->op),
                (long long)length);
}

// Normalises each row by what statistics(block, mean, rstd) finds for a block of them. Bias may be absent, weight too.
template <class T, class Statistics>
static yoke_status normalize_rows(const yoke_launch *launch, const NormRows<2> &rows,
                                  const yoke_operand &weight, const yoke_operand *bias,
                                  const Statistics &statistics)
{
    using C = compute_type<T>;
    int64_t n = rows.length;
    bool affine = is_present(weight) || (bias && is_present(*bias));
    Scratch scratch(launch);
    C *w = nullptr, *b = nullptr;
    if (affine) {
        if (yoke_status status = scratch.reserve((uint64_t)(n * 2 + 1) * sizeof(C))) return status;
        w = static_cast<C *>(scratch.data());
        b = w + n;
        gather_parameter<T>(weight, n, (C)1, w);
        gather_parameter<T>(bias ? *bias : yoke_operand{}, n, (C)0, b);
    }
    bool far = rows.template is_far_as<T>(), failed = false;
    parallel_shares(rows.count, max(1, kNormGrain / max(1, n)), [&](int64_t begin, int64_t end) {
        bool done = run_norm_rows<T>(rows, begin, end, [&](const RowBlock<2, C> &block) {
            C mean[kNormRows], rstd[kNormRows];
            statistics(block, mean, rstd);
            for (int r = 0; r < block.count; r++)
                apply_row<C>(block.in[0][r], {mean[r], rstd[r]}, w, b, block.in[1][r], n, far);
        });
        if (!done) __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    });
    return row_status(launch, failed, n);
}

// The mean and 1 / sqrt(variance + eps) of a row of which the plain sums do not tell them.
template <class C>
[[gnu::noinline]] static void find_carefully(const C *x, int64_t n, bool centred, C eps, bool lost,
                                             C *mean, C *rstd)
{
    const C s = lost ? kernels::kShrink<C> : (C)1;
    C centre = (C)0;
    if (centred) {
        // What the deviations add up to corrects a mean whose sum has been rounded.
        C first = kernels::sum_of<C>(n, [=](int64_t i) { return x[i] * s; }) / (C)n;
        centre = first + kernels::sum_of<C>(n, [=](int64_t i) { return x[i] * s - first; }) / (C)n;
    }
    C squares =
        kernels::sum_of<C>(n, [=](int64_t i) { return (x[i] * s - centre) * (x[i] * s - centre); });
    *mean = centre / s;
    *rstd = lost ? kernels::inverse_root_of_shrunk(squares / (C)n, eps)
                 : kernels::inverse_root(squares / (C)n, eps);
}

// What a row's statistics are, whose squares (of deviations from the mean, where it is centred) add up to `*rstd`.
template <class C>
static void finish_statistics(const C *x, int64_t n, bool centred, C eps, C *mean, C *rstd)
{
    C variance = *rstd / (C)n;
    if (kernels::is_doubtful(*mean, variance)) [[unlikely]]
        find_carefully(x, n, centred, eps, kernels::overflowed(variance), mean, rstd);
    else
        *rstd = kernels::inverse_root(variance, eps);
}

YOKE_KERNEL(layer_norm)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[3];
    NormRows<2> rows({&x, &out}, kernels::norm_axis(launch));
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        C *means = data_of<C>(o[4]), *rstds = data_of<C>(o[5]);
        C eps = (C)kernels::norm_epsilon(launch);
        int64_t n = rows.length;
        auto statistics = [=](const RowBlock<2, C> &block, C *mean, C *rstd) {
            for (int r = 0; r < block.count; r++) mean[r] = kernels::mean_of(block.in[0][r], n);
            for (int r = 0; r < block.count; r++)
                rstd[r] = kernels::squared_deviations(block.in[0][r], mean[r], n);
            for (int r = 0; r < block.count; r++) {
                finish_statistics(block.in[0][r], n, true, eps, &mean[r], &rstd[r]);
                means[block.first + r] = mean[r];
                rstds[block.first + r] = rstd[r];
            }
        };
        return normalize_rows<T>(launch, rows, o[1], &o[2], statistics);
    });
}

YOKE_KERNEL(rms_norm)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[2];
    NormRows<2> rows({&x, &out}, kernels::norm_axis(launch));
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        using C = compute_type<T>;
        C *rstds = data_of<C>(o[3]);
        C eps = (C)kernels::norm_epsilon(launch);
        int64_t n = rows.length;
        auto statistics = [=](const RowBlock<2, C> &block, C *mean, C *rstd) {
            for (int r = 0; r < block.count; r++) {
                const C *in = block.in[0][r];
                mean[r] = (C)0;
                rstd[r] = kernels::sum_of<C>(n, [=](int64_t i) { return in[i] * in[i]; });
            }
            for (int r = 0; r < block.count; r++) {
                finish_statistics(block.in[0][r], n, false, eps, &mean[r], &rstd[r]);
                rstds[block.first + r] = rstd[r];
            }
        };
        return normalize_rows<T>(launch, rows, o[1], nullptr, statistics);
    });
}

// ---- gradients --------------------------------------------------------------------------------------------------

// What one row's gradient needs.
template <class C>
struct NormRow {
    C mean, rstd;
    const C *weight;  // dense; ones if the op had none
    bool centred;     // layer_norm, not rms_norm
    int64_t n;
};

template <class C>
static void row_gradient(const NormRow<C> &row, const C *g, const C *x, C *dx, bool far)
{
    const C *w = row.weight;
    int64_t n = row.n;
    const kernels::Normal<C> normal(row.mean, row.rstd);
    C rstd = row.rstd, mean_g = (C)0;
    if (row.centred) mean_g = kernels::sum_of<C>(n, [=](int64_t i) { return g[i] * w[i]; }) / (C)n;
    auto product = [=](int64_t i) { return g[i] * w[i] * normal(x[i]); };
    C mean_g_normal = kernels::sum_of<C>(n, product) / (C)n;
    finish_row(
        dx, x, n, far, [=](int64_t i) __attribute__((always_inline)) {
            dx[i] = kernels::norm_backward(g[i] * w[i], normal(x[i]), rstd, mean_g, mean_g_normal);
        });
}

template <class C>
static void add_to_weight(const NormRow<C> &row, const C *g, const C *x, C *dweight, C *dbias)
{
    const kernels::Normal<C> normal(row.mean, row.rstd);
#pragma omp simd
    for (int64_t i = 0; i < row.n; i++) {
        dweight[i] += g[i] * normal(x[i]);
        dbias[i] += g[i];
    }
}

using NormGradient = kernels::NormGradientCall;

// A statistic as the op saved it, row-major and dense.
template <class C>
static C statistic(const yoke_operand *s, int64_t row)
{
    return s ? data_of<C>(*s)[row] : (C)0;
}

// Stage two: the runs' sums, one after another, into the results.
template <class T>
static void add_runs(const NormGradient &o, const compute_type<T> *sums, int64_t items, int64_t n)
{
    using C = compute_type<T>;
    parallel_range(n, kNormGrain / 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            C dweight = (C)0, dbias = (C)0;
            for (int64_t item = 0; item < items; item++) {
                dweight += sums[item * 2 * n + i];
                dbias += sums[item * 2 * n + n + i];
            }
            data_of<T>(*o.dweight)[i] = store<T>(dweight);
            if (o.dbias) data_of<T>(*o.dbias)[i] = store<T>(dbias);
        }
    });
}

// Rows [begin, end): dx, and the sums of the weight's gradient.
template <class T>
static bool run_gradient(const NormGradient &o, const NormRows<3> &rows, int64_t begin, int64_t end,
                         const compute_type<T> *weight, compute_type<T> *sums)
{
    using C = compute_type<T>;
    int64_t n = rows.length;
    for (int64_t i = 0; sums && i < 2 * n; i++) sums[i] = (C)0;
    bool far = rows.template is_far_as<T>();
    bool done = run_norm_rows<T>(rows, begin, end, [&](const RowBlock<3, C> &block) {
        for (int r = 0; r < block.count; r++) {
            const C *g = block.in[0][r], *x = block.in[1][r];
            int64_t number = block.first + r;
            NormRow<C> row{statistic<C>(o.mean, number), statistic<C>(o.rstd, number), weight,
                           o.mean != nullptr, n};
            if (sums) add_to_weight(row, g, x, sums, sums + n);
            if (o.of_x) row_gradient(row, g, x, block.in[2][r], far);
        }
    });
    return done;
}

template <class T>
static yoke_status norm_gradient(const yoke_launch *launch, const NormGradient &o)
{
    using C = compute_type<T>;
    NormRows<3> rows({o.grad, o.x, o.of_x ? o.dx : o.grad}, o.axis);
    rows.written = o.of_x;
    int64_t n = rows.length, per_item = max(kLeastRowItem, divide_up(rows.count, kRowItems));
    int64_t items = divide_up(rows.count, per_item);
    Scratch scratch(launch);
    uint64_t sums_size = o.of_weight ? (uint64_t)(items * 2 * n) : 0;
    if (yoke_status status = scratch.reserve((sums_size + (uint64_t)n + 1) * sizeof(C)))
        return status;
    C *weight = static_cast<C *>(scratch.data()), *sums = weight + n;
    gather_parameter<T>(*o.weight, n, (C)1, weight);
    bool failed = false;
    auto run = [&](int64_t item) {
        int64_t end = min(rows.count, (item + 1) * per_item);
        if (!run_gradient<T>(o, rows, item * per_item, end, weight,
                             o.of_weight ? sums + item * 2 * n : nullptr))
            __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    };
    if (rows.count * n < 2 * kNormGrain)
        for (int64_t item = 0; item < items; item++) run(item);
    else
        parallel_items(items, run);
    if (o.of_weight && !failed) add_runs<T>(o, sums, items, n);
    return row_status(launch, failed, n);
}

// Layer_norm's where it is centred, else rms_norm's.
static yoke_status norm_gradient(const yoke_launch *launch, bool is_centred)
{
    const NormGradient gradient(launch, is_centred);
    return for_float(launch, "x", gradient.x->dtype,
                     [&]<class T>() { return norm_gradient<T>(launch, gradient); });
}

YOKE_KERNEL(_layer_norm_backward)
{
    return norm_gradient(launch, true);
}

YOKE_KERNEL(_rms_norm_backward)
{
    return norm_gradient(launch, false);
}

YOKE_SIMD_END
