// Gradients of layer_norm, of add_layer_norm, and of rms_norm: one read of g and x and one write of dx if a group of
// threads holds the row. The gradients of weight and bias come in two stages: each block adds up its rows in
// registers, then the blocks' sums are added in order.
#include "kernels/common/norm.h"
#include "kernels/common/norm_call.h"

#include "kernels/cuda/ops/lined.cuh"
#include "kernels/cuda/ops/norm_sum.cuh"

YOKE_CUDA_BEGIN

using kernels::norm_backward;
using kernels::Normal;

// Operands of a row: g, x, weight, dx; of a sum besides: kOther.
template <class C>
struct NormGradient {
    const C *means, *rstds;  // by row; means only in layer_norm
    C *sums;                 // [blocks, 2, length]: of g normal, and of g; null if not wanted
    bool has_weight, of_x, has_other;
};

template <class C>
struct RowStatistics {
    C mean, rstd;
    Normal<C> normal;

    // Reads the statistics of a row. Missing rows have zeros, so they add 0.
    __device__ RowStatistics(const NormGradient<C> &of, int64_t row, bool is_row)
        : mean(is_row && of.means ? of.means[row] : (C)0),
          rstd(is_row ? of.rstds[row] : (C)0),
          normal(mean, rstd)
    {
    }
};

// Pack of a row's gradient, for both passes.
template <class C, int V>
struct GradientPack {
    C g[V], normal[V], weighted[V];

    // Turns x, stored in `normal`, into its normal, and the weights, stored in `weighted`, into weighted gradients.
    // Elements beyond the end have the mean as x: their normal is 0, while the normal of 0 may be infinite.
    __device__ void finish(bool has_weight, const RowStatistics<C> &row)
    {
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            normal[k] = row.normal(normal[k]);
            weighted[k] = has_weight ? g[k] * weighted[k] : g[k];
        }
    }
    __device__ void add_to(GradientSums<C> &sums) const
    {
        YOKE_UNROLL
        for (int k = 0; k < V; k++) {
            sums.g += weighted[k];
            sums.g_normal += weighted[k] * normal[k];
        }
    }
    __device__ void gradient(const RowStatistics<C> &row, const GradientSums<C> &means,
                             C (&dx)[V]) const
    {
        YOKE_UNROLL
        for (int k = 0; k < V; k++)
            dx[k] = norm_backward(weighted[k], normal[k], row.rstd, means.g, means.g_normal);
    }
};

// Returns the means subtracted in the gradient. rms_norm does not subtract the mean of g.
template <class C>
__device__ inline GradientSums<C> means_of(const NormGradient<C> &of, const GradientSums<C> &sums,
                                           int64_t length)
{
    return {of.means ? sums.g / (C)length : (C)0, sums.g_normal / (C)length};
}

// Adds the sums of a block's groups, group after group, at the block's place.
template <class In, int E, class C>
__device__ inline void add_groups(const C (&dweight)[E], const C (&dbias)[E], const Member &member,
                                  int length, C *to)
{
    constexpr int V = kRowPack<In>;
    YOKE_DYNAMIC_SHARED(C, sums);
    const int groups = (int)member.groups(), mine = member.number();
    for (int i = (int)threadIdx.x; i < 2 * length; i += (int)blockDim.x) sums[i] = (C)0;
    for (int turn = 0; turn < groups; turn++) {
        __syncthreads();
        if (turn != mine) continue;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) {
            const int at = member.pack<V>(i / V) + i % V;
            if (at >= length) continue;
            sums[at] += dweight[i];
            sums[length + at] += dbias[i];
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 2 * length; i += (int)blockDim.x) to[i] = sums[i];
}

// Stores a block's sums at its place. If a block has a single row at a time, each thread stores its own sums.
template <class In, class C, int E>
__device__ inline void put_sums(const C (&dweight)[E], const C (&dbias)[E], const Member &member,
                                int length, C *sums)
{
    C *to = sums + (int64_t)blockIdx.x * 2 * length;
    if (member.group < (int)blockDim.x) return add_groups<In>(dweight, dbias, member, length, to);
    constexpr int V = kRowPack<In>;
    YOKE_UNROLL
    for (int i = 0; i < E; i++) {
        const int at = member.pack<V>(i / V) + i % V;
        if (at >= length) continue;
        to[at] = dweight[i];
        to[length + at] = dbias[i];
    }
}

// Computes the gradients of rows. Threads with few elements hold g and x. With many elements, or rows read by the
// element, threads read both a second time, from a near cache, two packs at a time: all packs at once would take
// registers that the sums need.
template <class In, int E, bool kPacked, int N, class C = typename In::Value>
__global__ void __launch_bounds__(
    kMostThreads, (std::is_same_v<In, Singles> && kPacked && E == kFew<In> && N == 4 ? 2 : 1))
    gradient_rows(Rows<N> rows, NormGradient<C> of, int group)
{
    using Incoming = Beside<In, N>;
    constexpr int V = kRowPack<In>;
    constexpr bool kHolds = kPacked && E == kFew<In>;
    constexpr int kAtOnce = kHolds ? E / V : kPacked ? 2 : 1;  // packs of the second pass
    const Member member(group);
    C dweight[E] = {}, dbias[E] = {};
    for (int64_t first = blockIdx.x * member.groups(); first < rows.count;
         first += gridDim.x * member.groups()) {
        const int64_t row = first + member.number();
        const bool is_row = row < rows.count;
        const Place<N> place = rows.place(is_row ? row : first);
        const Chunk<In, E, kPacked> weight(rows, 2, place.data[2], 0),
            dx(rows, 3, place.data[3], 0);
        Chunk<Incoming, E, kPacked, V> g(rows, 0, place.data[0], 0);
        Chunk<In, E, kPacked> x(rows, 1, place.data[1], 0);
        if (!is_row) g.left = x.left = 0;
        const RowStatistics<C> statistics(of, row, is_row);
        Held<Incoming, kHolds ? E : V, V> held_g{};
        Held<In, kHolds ? E : V> held_x{};
        GradientSums<C> sums = GradientSums<C>::init();
        const auto take = [&](int p) {
            const int at = member.pack<V>(p);
            GradientPack<C, V> pack;
            if (!kHolds) {
                g.load(at, held_g.packs[0]);
                x.load(at, held_x.packs[0]);
            }
            g.take(at, held_g.packs[p * kHolds], (C)0, pack.g);
            x.take(at, held_x.packs[p * kHolds], statistics.mean, pack.normal);
            if (of.has_weight) weight.take(at, (C)0, pack.weighted);
            pack.finish(of.has_weight, statistics);
            return pack;
        };
        if constexpr (kHolds) {
            g.load(member, held_g);
            x.load(member, held_x);
        }
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) {
            const GradientPack<C, V> pack = take(p);
            pack.add_to(sums);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) {
                dweight[p * V + k] += pack.g[k] * pack.normal[k];
                dbias[p * V + k] += pack.g[k];
            }
        }
        if (!of.of_x) continue;
        const GradientSums<C> means = means_of(of, sum_pairs(sums, group), rows.length);
        if (!is_row) continue;
        YOKE_UNROLL_BY(kAtOnce)
        for (int p = 0; p < E / V; p++) {
            C y[V];
            take(p).gradient(statistics, means, y);
            if (of.has_other) add_other<In, kPacked>(rows, place, 0, member.pack<V>(p), y);
            dx.put(member.pack<V>(p), y);
        }
    }
    if (of.sums) put_sums<In>(dweight, dbias, member, (int)rows.length, of.sums);
}

// ---- longer rows --------------------------------------------------------------------------------------------------

// Computes only dx: each block goes over its row twice.
template <class In, class C = typename In::Value>
__global__ void __launch_bounds__(kMostThreads) gradient_long_rows(Rows<5> rows, NormGradient<C> of)
{
    constexpr int V = kRowPack<In>, E = V;
    const Member member((int)blockDim.x);
    for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
        const Place<5> place = rows.place(row);
        const RowStatistics<C> statistics(of, row, true);
        GradientSums<C> sums = GradientSums<C>::init(), means = sums;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t first = 0; first < rows.length; first += (int64_t)E * blockDim.x) {
                const Chunk<Beside<In, 5>, E, false, V> g(rows, 0, place.data[0], first);
                const Chunk<In, E, false> x(rows, 1, place.data[1], first),
                    weight(rows, 2, place.data[2], first), dx(rows, 3, place.data[3], first);
                const int at = member.pack<V>(0);
                GradientPack<C, V> pack;
                g.take(at, (C)0, pack.g);
                x.take(at, statistics.mean, pack.normal);
                if (of.has_weight) weight.take(at, (C)0, pack.weighted);
                pack.finish(of.has_weight, statistics);
                if (pass == 0) {
                    pack.add_to(sums);
                } else {
                    C y[V];
                    pack.gradient(statistics, means, y);
                    if (of.has_other) add_other<In, false>(rows, place, first, at, y);
                    dx.put(at, y);
                }
            }
            if (pass == 0) means = means_of(of, sum_pairs(sums, (int)blockDim.x), rows.length);
        }
    }
}

// Sums only the gradients of weight and bias: a block has 32 columns and a run of rows, divided among its warps.
template <class In, class C = typename In::Value>
__global__ void __launch_bounds__(kThreads)
    sum_gradient_columns(Rows<5> rows, NormGradient<C> of, int64_t rows_a_run)
{
    YOKE_SHARED(GradientSums<C>, strips, kMostThreads);
    const int64_t tiles = divide_up(rows.length, kWarp), run = blockIdx.x / tiles;
    const int64_t column = blockIdx.x % tiles * kWarp + place_in_warp();
    const int64_t end = min(rows.count, (run + 1) * rows_a_run);
    GradientSums<C> sums = GradientSums<C>::init();
    for (int64_t row = run * rows_a_run + warp_of_thread(); row < end; row += blockDim.x / kWarp) {
        if (column >= rows.length) break;
        const Place<5> place = rows.place(row);
        const RowStatistics<C> statistics(of, row, true);
        const C g =
            value_at<Beside<In, 5>>(rows.at(place.data[0], 0, column), rows.dtype[0], rows.size[0]);
        const C x = value_at<In>(rows.at(place.data[1], 1, column), rows.dtype[1], rows.size[1]);
        sums.g += g;
        sums.g_normal += g * statistics.normal(x);
    }
    strips[threadIdx.x] = sums;
    __syncthreads();
    if (warp_of_thread() > 0 || column >= rows.length) return;
    for (int strip = 1; strip < (int)blockDim.x / kWarp; strip++)
        sums = GradientSums<C>::combine(sums,
                                        (GradientSums<C>)strips[strip * kWarp + place_in_warp()]);
    of.sums[run * 2 * rows.length + column] = sums.g_normal;
    of.sums[run * 2 * rows.length + rows.length + column] = sums.g;
}

// Adds the runs of each column of [runs, 2 * length], and stores the gradients of weight and bias. The warps of a
// block share the runs.
template <class In, class C = typename In::Value>
__global__ void __launch_bounds__(kMostThreads)
    add_runs(const C *sums, int64_t runs, int64_t length, char *dweight, char *dbias, int dtype,
             int size)
{
    YOKE_SHARED(C, strips, kMostThreads);
    const int warps = (int)blockDim.x / kWarp;
    const int64_t i = (int64_t)blockIdx.x * kWarp + place_in_warp(), width = 2 * length;
    const int64_t share = divide_up(runs, warps), begin = warp_of_thread() * share;
    C sum = (C)0;
    if (i < width)
        for (int64_t run = begin; run < min(runs, begin + share); run++)
            sum += sums[run * width + i];
    strips[threadIdx.x] = sum;
    __syncthreads();
    if (warp_of_thread() > 0 || i >= width) return;
    for (int strip = 1; strip < warps; strip++) sum += (C)strips[strip * kWarp + place_in_warp()];
    if (i < length)
        put_one<In>(dtype, dweight + i * size, sum);
    else if (dbias)
        put_one<In>(dtype, dbias + (i - length) * size, sum);
}

// ---- launches -----------------------------------------------------------------------------------------------------

using GradientCall = kernels::NormGradientCall;

template <class In, int N, class C>
static yoke_status start_held(const yoke_launch *launch, const Rows<N> &rows,
                              const NormGradient<C> &of, const Sharing &sharing, int64_t blocks)
{
    const bool grouped = sharing.group < sharing.threads;
    const int64_t shared = grouped ? 2 * rows.length * (int64_t)sizeof(C) : 0;
    return for_sharing<In>(sharing, rows.all_packed, [&]<int E, bool kPacked>() {
        return start(launch, gradient_rows<In, E, kPacked, N>, {blocks, sharing.threads, shared},
                     rows, of, sharing.group);
    });
}

template <class In, class C>
static yoke_status start_long(const yoke_launch *launch, const Rows<5> &rows,
                              const NormGradient<C> &of, int64_t runs, int64_t rows_a_run)
{
    if (of.of_x)
        if (const yoke_status status =
                start(launch, gradient_long_rows<In>,
                      {min(rows.count, 0x7fffffff), block_size(kMostThreads)}, rows, of))
            return status;
    if (!of.sums) return YOKE_OK;
    return start(launch, sum_gradient_columns<In>,
                 {runs * divide_up(rows.length, kWarp), block_size(kThreads)}, rows, of,
                 rows_a_run);
}

constexpr int64_t kRuns = 64;      // most runs of rows, if rows are long
constexpr int64_t kLeastRun = 16;  // rows in each, at least

// Threads of a multiprocessor whose sums fit at once.
template <class In>
inline constexpr int64_t kBusyThreads = std::is_same_v<In, Singles> ? 1024 : 512;

template <class In, int N, class C = typename In::Value>
static yoke_status start_gradient(const yoke_launch *launch, const GradientCall &call,
                                  const Rows<N> &rows)
{
    if (rows.length == 0) return YOKE_OK;
    const Sharing sharing = share_rows<In>(rows.length, rows.all_packed);
    const int64_t rows_a_run = max(kLeastRun, divide_up(rows.count, kRuns));
    const int64_t runs = sharing.resident ? blocks_for(launch, rows.count, sharing.rows_a_block(),
                                                       max(1, kBusyThreads<In> / sharing.threads))
                                          : divide_up(rows.count, rows_a_run);
    Scratch scratch(launch);
    if (call.of_weight)
        if (const yoke_status status =
                scratch.reserve((uint64_t)(runs * 2 * rows.length) * sizeof(C)))
            return status;
    const NormGradient<C> of{call.mean ? data_of<const C>(*call.mean) : nullptr,
                             data_of<const C>(*call.rstd),
                             scratch.as<C>(),
                             is_present(*call.weight),
                             call.of_x,
                             call.grad_sum != nullptr};
    yoke_status status = YOKE_OK;
    if (sharing.resident)
        status = start_held<In>(launch, rows, of, sharing, runs);
    else if constexpr (N == 5)
        status = rows.count ? start_long<In>(launch, rows, of, runs, rows_a_run) : YOKE_OK;
    if (status || !call.of_weight) return status;
    return start(launch, add_runs<In>,
                 {divide_up(2 * rows.length, kWarp), block_size(kMostThreads)},
                 scratch.as<const C>(), runs, rows.length, data_of<char>(*call.dweight),
                 call.dbias ? data_of<char>(*call.dbias) : nullptr, rows.dtype[1], rows.size[1]);
}

template <class In>
static yoke_status gradient(const yoke_launch *launch, const GradientCall &call,
                            kernels::NormKind kind)
{
    Lined g(launch), x(launch), weight(launch), dx(launch), other(launch);
    if (const yoke_status status = g.take(*call.grad, call.axis, true)) return status;
    if (const yoke_status status = x.take(*call.x, call.axis, true)) return status;
    if (const yoke_status status = weight.take(*call.weight, 0, true)) return status;
    if (call.of_x)
        if (const yoke_status status = dx.take(*call.dx, call.axis, false)) return status;
    if (call.grad_sum)
        if (const yoke_status status = other.take(*call.grad_sum, call.axis, true)) return status;
    const yoke_operand *of_x = &x.operand(), *of_weight = weight.or_else(x), *to = dx.or_else(x);
    // Long rows always have the five operands of a sum.
    const Rows<4> rows = last_axes<4>({&g.operand(), of_x, of_weight, to}, call.axis);
    const bool is_plain = kind != kernels::NormKind::kAddLayer &&
                          share_rows<In>(rows.length, rows.all_packed).resident;
    const yoke_status status =
        is_plain
            ? start_gradient<In>(launch, call, rows)
            : start_gradient<In>(
                  launch, call,
                  last_axes<5>({&g.operand(), of_x, of_weight, to, other.or_else(x)}, call.axis));
    return status || !call.of_x ? status : dx.give(*call.dx);
}

static yoke_status norm_gradient(const yoke_launch *launch, kernels::NormKind kind)
{
    const GradientCall call(launch, kind);
    return for_row_format(launch, "x", call.x->dtype,
                          [&]<class In>() { return gradient<In>(launch, call, kind); });
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

YOKE_CUDA_END
