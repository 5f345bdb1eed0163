// layer_norm and rms_norm over the last axes, layer_norm of a sum, and their gradients: one pass over memory, a row at
// a time. Gradients of weight and bias come in two stages: sums over fixed runs of rows, then their sum in order.
#include "kernels/common/norm.h"

#include "kernels/common/norm_call.h"
#include "kernels/cpu/simd/norm_rows.h"

YOKE_SIMD_BEGIN

constexpr int64_t kNormGrain = 8192;   // elements below which rows stay in the calling thread
constexpr int64_t kRowItems = 64;      // at most so many runs of rows
constexpr int64_t kLeastRowItem = 16;  // rows in each, at least
// Rows added in the computing type before their sum joins the total.
constexpr int64_t kRowsOfSum = 64;

// Writes a parameter of n elements as a dense row of C. If the parameter is absent, every element is `value`.
template <class C>
static void gather_parameter(const yoke_operand &p, int64_t n, C value, C *to)
{
    if (!is_present(p)) {
        for (int64_t i = 0; i < n; i++) to[i] = value;
        return;
    }
    NormRows<1> row({&p}, 0);
    char *at[1] = {row.outer.data[0]};
    gather_norm_rows(row, 0, at, 1, to);
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

// Returns YOKE_OK, or a failure if a buffer for rows could not be allocated.
static yoke_status row_status(const yoke_launch *launch, bool failed, int64_t length)
{
    if (!failed) return YOKE_OK;
    return fail(YOKE_E_OOM, "%s: no memory for rows of %lld elements", op_name(launch->op),
                (long long)length);
}

// Normalises all rows, by the team: operand N - 2 is the source, operand N - 1 the result. statistics(block, mean,
// rstd) finds the numbers of a block of rows. Bias and weight may be absent.
template <class C, int N, class Statistics>
static yoke_status normalize_rows(const yoke_launch *launch, const NormRows<N> &rows,
                                  const yoke_operand &weight, const yoke_operand *bias,
                                  const Statistics &statistics)
{
    int64_t n = rows.length;
    bool affine = is_present(weight) || (bias && is_present(*bias));
    Scratch scratch(launch);
    C *w = nullptr, *b = nullptr;
    if (affine) {
        if (yoke_status status = scratch.reserve((uint64_t)(n * 2 + 1) * sizeof(C))) return status;
        w = static_cast<C *>(scratch.data());
        b = w + n;
        gather_parameter(weight, n, (C)1, w);
        gather_parameter(bias ? *bias : yoke_operand{}, n, (C)0, b);
    }
    bool far = rows.template is_far_as<C>(), failed = false;
    parallel_shares(rows.count, max(1, kNormGrain / max(1, n)), [&](int64_t begin, int64_t end) {
        bool done = run_norm_rows<C>(rows, begin, end, [&](const RowBlock<N, C> &block) {
            C mean[kNormRows], rstd[kNormRows];
            statistics(block, mean, rstd);
            for (int r = 0; r < block.count; r++)
                apply_row<C>(block.in[N - 2][r], {mean[r], rstd[r]}, w, b, block.in[N - 1][r], n,
                             far);
        });
        if (!done) __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    });
    return row_status(launch, failed, n);
}

// Finds the mean and 1 / sqrt(variance + eps) of a row from its values times s, because the plain sums lost them.
template <class C>
[[gnu::noinline]] static void find_carefully(const C *x, int64_t n, bool centred, C eps, C s,
                                             C *mean, C *rstd)
{
    C centre = (C)0;
    if (centred) {
        // The sum of the deviations corrects the rounding of the mean.
        C first = kernels::sum_of<C>(n, [=](int64_t i) { return x[i] * s; }) / (C)n;
        centre = first + kernels::sum_of<C>(n, [=](int64_t i) { return x[i] * s - first; }) / (C)n;
    }
    C squares =
        kernels::sum_of<C>(n, [=](int64_t i) { return (x[i] * s - centre) * (x[i] * s - centre); });
    *mean = kernels::unscaled(centre, s);
    *rstd = kernels::inverse_root_of_scaled(squares / (C)n, s, eps);
}

// Computes 1 / sqrt(variance + eps) of a row from *rstd, the sum of squares, or of squared deviations if centred. If
// these sums are doubtful, computes mean and rstd again with care.
template <class C>
static void finish_statistics(const C *x, int64_t n, bool centred, C eps, C *mean, C *rstd)
{
    const C variance = *rstd / (C)n;
    if (kernels::is_doubtful(*mean, variance) || kernels::vanished(variance, eps)) [[unlikely]]
        find_carefully(x, n, centred, eps, kernels::scale_of(*mean, variance, eps), mean, rstd);
    else
        *rstd = kernels::inverse_root(variance, eps);
}

// Statistics of rows x for layer_norm, which also stores them.
template <class C>
struct LayerStatistics {
    C *means, *rstds;
    C eps;
    int64_t n;

    void operator()(C *const *x, int64_t first, int count, C *mean, C *rstd) const
    {
        for (int r = 0; r < count; r++) mean[r] = kernels::mean_of(x[r], n);
        for (int r = 0; r < count; r++) rstd[r] = kernels::squared_deviations(x[r], mean[r], n);
        for (int r = 0; r < count; r++) {
            finish_statistics(x[r], n, true, eps, &mean[r], &rstd[r]);
            means[first + r] = mean[r];
            rstds[first + r] = rstd[r];
        }
    }
};

YOKE_KERNEL(layer_norm)
{
    const yoke_operand *o = launch->operands;
    NormRows<2> rows({&o[0], &o[3]}, kernels::norm_axis(launch));
    return in_floats(launch, "x", o[0].dtype, [&]<class C>() {
        const LayerStatistics<C> of{data_of<C>(o[4]), data_of<C>(o[5]),
                                    (C)kernels::norm_epsilon(launch), rows.length};
        return normalize_rows<C>(launch, rows, o[1], &o[2],
                                 [=](const RowBlock<2, C> &block, C *mean, C *rstd) {
                                     of(block.in[0], block.first, block.count, mean, rstd);
                                 });
    });
}

// Computes sum = x + residual, rounded to the stored dtype.
template <class C>
static void add_rows(yoke_dtype dtype, const C *x, const C *residual, C *sum, int64_t n, bool far)
{
    finish_row(
        sum, x, n,
        far, [=](int64_t i) __attribute__((always_inline)) { sum[i] = x[i] + residual[i]; });
    if (dtype == kernels::dtype_of<C>) return;
    char rounded[kMostElements * sizeof(uint16_t)];
    for (int64_t first = 0; first < n; first += kMostElements) {
        const int64_t count = min(kMostElements, n - first);
        give_run(dtype, sum + first, count, rounded, 0);
        take_run(dtype, rounded, 0, count, sum + first);
    }
}

YOKE_KERNEL(add_layer_norm)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &residual = o[1], &sum = o[4], &out = o[5];
    NormRows<4> rows({&x, &residual, &sum, &out}, kernels::norm_axis(launch));
    rows.written = 2;
    return in_floats(launch, "x", sum.dtype, [&]<class C>() {
        const LayerStatistics<C> of{data_of<C>(o[6]), data_of<C>(o[7]),
                                    (C)kernels::norm_epsilon(launch), rows.length};
        const bool far = rows.is_far_as<C>();
        return normalize_rows<C>(launch, rows, o[2], &o[3],
                                 [&](const RowBlock<4, C> &block, C *mean, C *rstd) {
                                     for (int r = 0; r < block.count; r++)
                                         add_rows(sum.dtype, block.in[0][r], block.in[1][r],
                                                  block.in[2][r], rows.length, far);
                                     of(block.in[2], block.first, block.count, mean, rstd);
                                 });
    });
}

YOKE_KERNEL(rms_norm)
{
    const yoke_operand *o = launch->operands;
    const yoke_operand &x = o[0], &out = o[2];
    NormRows<2> rows({&x, &out}, kernels::norm_axis(launch));
    return in_floats(launch, "x", x.dtype, [&]<class C>() {
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
        return normalize_rows<C>(launch, rows, o[1], nullptr, statistics);
    });
}

// ---- gradients --------------------------------------------------------------------------------------------------

// Numbers for the gradient of a row.
template <class C>
struct NormRow {
    C mean, rstd;
    const C *weight;  // dense; ones if the op had no weight
    bool centred;     // layer_norm, not rms_norm
    int64_t n;
};

template <class C>
static void row_gradient(const NormRow<C> &row, const C *g, const C *x, const C *more, C *dx,
                         bool far)
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
    if (!more) return;
        // Apart, lest the compiler round once what two ops round twice.
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] += more[i];
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

// Returns a row's statistic as the op saved it, row-major and dense; 0 if the op saved none.
template <class C>
static C statistic(const yoke_operand *s, int64_t row)
{
    return s ? data_of<C>(*s)[row] : (C)0;
}

// Adds the sums of the runs, in order, and writes the gradients of weight and bias. This is stage two.
template <class C>
static void add_runs(const NormGradient &o, const double *sums, int64_t items, int64_t n)
{
    constexpr int64_t kPiece = 64;
    parallel_range(n, kNormGrain / 8, [&](int64_t begin, int64_t end) {
        for (; begin < end; begin += kPiece) {
            const int64_t count = min(kPiece, end - begin);
            double totals[2][kPiece] = {};
            for (int64_t item = 0; item < items; item++) {
                const double *of = sums + item * 2 * n + begin;
                for (int64_t i = 0; i < count; i++) totals[0][i] += of[i];
                for (int64_t i = 0; i < count; i++) totals[1][i] += of[n + i];
            }
            C dweight[kPiece], dbias[kPiece];
            for (int64_t i = 0; i < count; i++) dweight[i] = (C)totals[0][i];
            for (int64_t i = 0; i < count; i++) dbias[i] = (C)totals[1][i];
            give_run(o.dweight->dtype, dweight, count, o.dweight->data, begin);
            if (o.dbias) give_run(o.dbias->dtype, dbias, count, o.dbias->data, begin);
        }
    });
}

// Sums of a run of rows, for the gradients of weight and bias: of some rows in C, of all rows in double.
template <class C>
struct RunSums {
    double *all;
    C *some;
    int64_t size, rows = 0;

    RunSums(double *of_all, C *of_some, int64_t n) : all(of_all), some(of_some), size(2 * n)
    {
        for (int64_t i = 0; i < size; i++) all[i] = 0, some[i] = (C)0;
    }
    void join()
    {
#pragma omp simd
        for (int64_t i = 0; i < size; i++) {
            all[i] += (double)some[i];
            some[i] = (C)0;
        }
        rows = 0;
    }
};

// Computes dx and the sums of the weight's gradient for rows [begin, end). The operands are grad, x, perhaps a
// further gradient of x, and dx. Returns false if memory for a buffer is missing.
template <class C, int N>
static bool run_gradient(const NormGradient &o, const NormRows<N> &rows, int64_t begin, int64_t end,
                         const C *weight, RunSums<C> *sums)
{
    int64_t n = rows.length;
    bool far = rows.template is_far_as<C>();
    return run_norm_rows<C>(rows, begin, end, [&](const RowBlock<N, C> &block) {
        if (sums && sums->rows >= kRowsOfSum) sums->join();
        if (sums) sums->rows += block.count;
        for (int r = 0; r < block.count; r++) {
            const C *g = block.in[0][r], *x = block.in[1][r],
                    *more = N == 4 ? block.in[2][r] : nullptr;
            int64_t number = block.first + r;
            NormRow<C> row{statistic<C>(o.mean, number), statistic<C>(o.rstd, number), weight,
                           o.mean != nullptr, n};
            if (sums) add_to_weight(row, g, x, sums->some, sums->some + n);
            if (o.of_x) row_gradient(row, g, x, more, block.in[N - 1][r], far);
        }
    });
}

template <class C, int N>
static yoke_status norm_gradient(const yoke_launch *launch, const NormGradient &o, NormRows<N> rows)
{
    rows.written = o.of_x;
    int64_t n = rows.length, per_item = max(kLeastRowItem, divide_up(rows.count, kRowItems));
    int64_t items = divide_up(rows.count, per_item);
    Scratch scratch(launch);
    const int64_t size = o.of_weight ? items * 2 * n : 0;
    const uint64_t bytes = (uint64_t)size * (sizeof(double) + sizeof(C));
    if (yoke_status status = scratch.reserve(bytes + (uint64_t)(n + 1) * sizeof(C))) return status;
    auto *sums = static_cast<double *>(scratch.data());
    C *some = (C *)(sums + size), *weight = some + size;
    gather_parameter(*o.weight, n, (C)1, weight);
    bool failed = false;
    auto run = [&](int64_t item) {
        int64_t end = min(rows.count, (item + 1) * per_item);
        bool done = true;
        if (o.of_weight) {
            RunSums<C> of_run(sums + item * 2 * n, some + item * 2 * n, n);
            done = run_gradient<C>(o, rows, item * per_item, end, weight, &of_run);
            of_run.join();
        } else {
            done = run_gradient<C>(o, rows, item * per_item, end, weight, nullptr);
        }
        if (!done) __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    };
    if (rows.count * n < 2 * kNormGrain)
        for (int64_t item = 0; item < items; item++) run(item);
    else
        parallel_items(items, run);
    if (o.of_weight && !failed) add_runs<C>(o, sums, items, n);
    return row_status(launch, failed, n);
}

static yoke_status norm_gradient(const yoke_launch *launch, kernels::NormKind kind)
{
    const NormGradient o(launch, kind);
    const yoke_operand *dx = o.of_x ? o.dx : o.grad;
    return in_floats(launch, "x", o.x->dtype, [&]<class C>() {
        if (o.grad_sum && o.of_x)
            return norm_gradient<C, 4>(launch, o,
                                       NormRows<4>({o.grad, o.x, o.grad_sum, dx}, o.axis));
        return norm_gradient<C, 3>(launch, o, NormRows<3>({o.grad, o.x, dx}, o.axis));
    });
}

YOKE_KERNEL(_layer_norm_backward)
{
    return norm_gradient(launch, kernels::NormKind::kLayer);
}

YOKE_KERNEL(_rms_norm_backward)
{
    return norm_gradient(launch, kernels::NormKind::kRms);
}

YOKE_KERNEL(_add_layer_norm_backward)
{
    return norm_gradient(launch, kernels::NormKind::kAddLayer);
}

YOKE_SIMD_END
