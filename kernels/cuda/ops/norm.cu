// layer_norm and rms_norm over the last axes, and layer_norm of a sum: one read and one write of memory where a group
// of threads holds the row.
#include "kernels/common/norm.h"

#include "kernels/common/norm_call.h"
#include "kernels/cuda/ops/lined.cuh"
#include "kernels/cuda/ops/norm_sum.cuh"

YOKE_CUDA_BEGIN

using kernels::inverse_root;
using kernels::inverse_root_of_scaled;
using kernels::Normal;
using kernels::RowMoments;
using kernels::scale_of;
using kernels::unscaled;

// Operands of a row: x, weight, bias, out; of a sum besides: what is added to x, and the sum. Weight and bias are the
// same for every row.
constexpr int kOut = 3, kResidual = 4, kSum = 5;
template <int N>
constexpr unsigned kOfX = N == 4 ? 1 : 1 | 1 << kResidual | 1 << kSum;
constexpr unsigned kOfRow = kOfX<6> | 1 << kOut;

template <class C>
struct Normalization {
    C *means, *rstds;  // by row; means only in layer_norm
    C eps;
    bool has_weight, has_bias, is_sum;
};

// The weight and the bias of a chunk, 1 and 0 where there are none.
template <class In, int E, bool kPacked, class C = typename In::Value>
struct Affine {
    static constexpr int V = kRowPack<In>;
    // With x and the weight, 32 floats of the bias would exceed a thread's registers. So the bias is read at its use.
    static constexpr bool kHoldsBias = E * In::kSizes <= 64;
    Chunk<In, E, kPacked> weight, bias;
    Held<In, E> held_weight;
    Held<In, kHoldsBias ? E : V> held_bias;

    template <int N>
    __device__ Affine(const Normalization<C> &to, const Rows<N> &rows, const Member &member,
                      int64_t first)
        : weight(rows, 1, rows.outer.data[1], first), bias(rows, 2, rows.outer.data[2], first)
    {
        if (!to.has_weight) weight.left = 0;
        if (!to.has_bias) bias.left = 0;
        weight.load_or(member, (C)1, held_weight);
        if constexpr (kHoldsBias) bias.load_or(member, (C)0, held_bias);
    }

    __device__ void apply(const Member &member, const Normal<C> &normal, C (&x)[E])
    {
        held_weight.stay_packed();
        if constexpr (kHoldsBias) held_bias.stay_packed();
        YOKE_UNROLL
        for (int p = 0; p < E / V; p++) {
            C w[V], b[V];
            weight.take_pack(member, p, held_weight, (C)1, w);
            if constexpr (kHoldsBias)
                bias.take_pack(member, p, held_bias, (C)0, b);
            else
                bias.take(member.pack<V>(p), (C)0, b);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) x[p * V + k] = normal(x[p * V + k]) * w[k] + b[k];
        }
    }
};

template <class In, bool kPacked, int E, int N, class C>
__device__ inline void take_chunk(const Rows<N> &rows, int operand, char *row, const Member &member,
                                  int64_t first, C (&x)[E])
{
    Held<In, E> held;
    const Chunk<In, E, kPacked> chunk(rows, operand, row, first);
    chunk.load_or(member, (C)0, held);
    chunk.take_all(member, held, (C)0, x);
}

// Adds a pack to x. The sum is rounded to its stored dtype.
template <class In, int V, class C>
__device__ inline void add_packs(int dtype, const C (&residual)[V], C (&x)[V])
{
    In::with(dtype, [&]<class T>() {
        YOKE_UNROLL
        for (int k = 0; k < V; k++) x[k] = load<T>(store<T>(x[k] + residual[k]));
    });
}

// Adds a chunk of x and of the residual, and stores the sum in x and at the sum's place.
template <class In, bool kPacked, int E, class C>
__device__ inline void add_chunk(const Rows<6> &rows, const Place<6> &place, const Member &member,
                                 int64_t first, C (&x)[E])
{
    using Addend = Beside<In, 6>;
    constexpr int V = kRowPack<In>, kAtOnce = E == kFew<In> ? E / V : 2;
    const Chunk<Addend, E, kPacked, V> one(rows, 0, place.data[0], first),
        other(rows, kResidual, place.data[kResidual], first);
    const Chunk<In, E, kPacked> sum(rows, kSum, place.data[kSum], first);
    YOKE_UNROLL
    for (int begin = 0; begin < E / V; begin += kAtOnce) {
        Stored<Addend, V> ones[kAtOnce]{}, others[kAtOnce]{};
        YOKE_UNROLL
        for (int p = 0; p < kAtOnce; p++) {
            one.load(member.pack<V>(begin + p), ones[p]);
            other.load(member.pack<V>(begin + p), others[p]);
        }
        YOKE_UNROLL
        for (int p = 0; p < kAtOnce; p++) {
            C a[V], b[V];
            const int at = member.pack<V>(begin + p);
            one.take(at, ones[p], (C)0, a);
            other.take(at, others[p], (C)0, b);
            add_packs<In>(rows.dtype[kSum], b, a);
            sum.put(at, a);
            YOKE_UNROLL
            for (int k = 0; k < V; k++) x[(begin + p) * V + k] = a[k];
        }
    }
}

// Takes a chunk of the values to normalise, which with six operands is first computed as a sum.
template <class In, bool kPacked, int N, int E, class C>
__device__ inline void begin_chunk(const Rows<N> &rows, const Place<N> &place, const Member &member,
                                   int64_t first, C (&x)[E])
{
    if constexpr (N == 4)
        take_chunk<In, kPacked>(rows, 0, place.data[0], member, first, x);
    else
        add_chunk<In, kPacked>(rows, place, member, first, x);
}

template <class C, int E>
__device__ inline C sum_values(const C (&x)[E], C scale)
{
    C sum = 0;
    YOKE_UNROLL
    for (int i = 0; i < E; i++) sum += x[i] * scale;
    return sum;
}

// Returns the sums of deviations of x scale from the approximate mean, and of their squares, over the row's elements.
template <class In, bool kPacked, int E, class C>
__device__ inline GradientSums<C> deviations_from(const C (&x)[E], C scale, C mean,
                                                  const Member &member, int64_t left)
{
    constexpr int V = kRowPack<In>;
    const int end = (int)min(left, 1 << 30);
    C sum = 0, squares = 0;
    YOKE_UNROLL
    for (int i = 0; i < E; i++) {
        const int at = member.pack<V>(i / V) + (kPacked ? 0 : i % V);  // a pack is there whole
        if (at >= end) continue;
        const C deviation = x[i] * scale - mean;
        sum += deviation;
        squares += deviation * deviation;
    }
    return {sum, squares};
}

// Finds the statistics of a group's row. If sums of a row overflow or vanish, all rows of the warp make a second pass
// with scaled values, because shuffles need whole warps. Only that row takes the second result.
template <class In, bool kPacked, int E, class C>
__device__ inline void find_statistics(const Normalization<C> &to, const C (&x)[E], int64_t length,
                                       const Member &member, C &mean, C &rstd)
{
    const C each = (C)1 / (C)length;
    bool lost = true;
    C scale = (C)1;
    YOKE_NO_UNROLL
    for (int pass = 0; pass < 2; pass++) {
        C centre = 0;
        if (to.means) centre = sum_group(sum_values(x, scale), member.group) * each;
        const GradientSums<C> sums =
            sum_pairs(deviations_from<In, kPacked>(x, scale, centre, member, length), member.group);
        // The sum of the deviations corrects the rounded sum of a mean far from 0.
        const C rest = to.means ? sums.g * each : (C)0;
        const C variance = sums.g_normal * each - rest * rest;
        if (lost) {
            mean = pass ? unscaled(centre + rest, scale) : centre + rest;
            rstd = pass ? inverse_root_of_scaled(variance, scale, to.eps)
                        : inverse_root(variance, to.eps);
        }
        if (pass) break;
        scale = scale_of(mean, sums.g_normal * each, to.eps);
        lost = scale != (C)1;
        if (!__any_sync(kWholeWarp, lost)) break;
    }
}

template <class C>
__device__ inline void keep_statistics(const Normalization<C> &to, int64_t row, C mean, C rstd)
{
    if (to.means) to.means[row] = mean;
    to.rstds[row] = rstd;
}

template <class In, int E, bool kPacked, int N, class C = typename In::Value>
__global__ void __launch_bounds__(
    kMostThreads, (kPacked && E == kFew<In> && (N == 4 || std::is_same_v<In, Singles>) ? 2 : 1))
    normalize_rows(Rows<N> rows, Normalization<C> to, int group)
{
    const Member member(group);
    Affine<In, E, kPacked> affine(to, rows, member, 0);
    for (int64_t first = blockIdx.x * member.groups(); first < rows.count;
         first += gridDim.x * member.groups()) {
        const int64_t row = first + member.number();
        const bool is_row = row < rows.count;
        C x[E], mean, rstd;
        begin_chunk<In, kPacked>(rows, rows.template place<kOfX<N>>(is_row ? row : first), member,
                                 0, x);
        find_statistics<In, kPacked>(to, x, rows.length, member, mean, rstd);
        if (!is_row) continue;
        if (member.in_group == 0) keep_statistics(to, row, mean, rstd);
        affine.apply(member, Normal<C>(mean, rstd), x);
        // Its place is not held in registers meanwhile.
        Chunk<Beside<In, N>, E, kPacked, kRowPack<In>>(
            rows, kOut, rows.template place<1 << kOut>(row).data[kOut], 0)
            .put(member, x);
    }
}

// Normalises long rows: each block goes over its row twice, or three times if squares overflowed or
// vanished. The moments of chunks are combined, because the mean may
// be far from 0. Without a sum, the sum's operands are stand-ins that are not read.
template <class In, class C = typename In::Value>
__global__ void __launch_bounds__(kMostThreads)
    normalize_long_rows(Rows<6> rows, Normalization<C> to)
{
    using State = RowMoments<C>;
    constexpr int E = kFew<In>, V = kRowPack<In>;
    const int normalised = to.is_sum ? kSum : 0;
    const Member member((int)blockDim.x);
    const int64_t chunk = (int64_t)E * blockDim.x;
    const auto combine = [](const State &a, const State &b) { return State::combine(a, b); };
    for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
        const Place<6> place = rows.place<kOfRow>(row);
        char *const from =
            to.is_sum ? place.data[kSum] : place.data[0];  // an index would spill them
        C x[E], scale = (C)1;
        State state = State::init();
        YOKE_NO_UNROLL
        for (int pass = 0; pass < 2; pass++) {
            state = State::init();
            for (int64_t first = 0; first < rows.length; first += chunk) {
                if (pass == 0 && to.is_sum)
                    add_chunk<In, false>(rows, place, member, first, x);
                else
                    take_chunk<In, false>(rows, normalised, from, member, first, x);
                int count = 0;
                for (int i = 0; i < E; i++)
                    count += member.pack<V>(i / V) + i % V < rows.length - first;
                if (count == 0) continue;
                const C mean = to.means ? sum_values(x, scale) / (C)count : (C)0;
                const GradientSums<C> sums =
                    deviations_from<In, false>(x, scale, mean, member, rows.length - first);
                const C rest = to.means ? sums.g / (C)count : (C)0;  // corrects the mean
                state =
                    State::combine(state, {(C)count, mean + rest, sums.g_normal - sums.g * rest});
            }
            state = reduce_block(state, State::init(), combine);
            // Once more, of scaled values, where squares have overflowed or vanished.
            const C wanted = scale_of(state.mean, state.variance(), to.eps);
            if (pass || wanted == (C)1) break;
            scale = wanted;
        }
        const C mean = unscaled(state.mean, scale);
        const C rstd = inverse_root_of_scaled(state.variance(), scale, to.eps);
        const Normal<C> normal(mean, rstd);
        for (int64_t first = 0; first < rows.length; first += chunk) {
            take_chunk<In, false>(rows, normalised, from, member, first, x);
            Affine<In, E, false>(to, rows, member, first).apply(member, normal, x);
            Chunk<Beside<In, 6>, E, false, V>(rows, kOut, place.data[kOut], first).put(member, x);
        }
        if (threadIdx.x == 0) keep_statistics(to, row, mean, rstd);
    }
}

template <class In, int N, class C>
static yoke_status start_normalize(const yoke_launch *launch, const Rows<N> &rows,
                                   const Normalization<C> &to)
{
    if (rows.count == 0) return YOKE_OK;
    const Sharing sharing = share_rows<In>(rows.length, rows.all_packed);
    const Grid grid = row_grid(launch, rows.count, sharing);
    if constexpr (N == 6)
        if (!sharing.resident) return start(launch, normalize_long_rows<In>, grid, rows, to);
    return for_sharing<In>(sharing, rows.all_packed, [&]<int E, bool kPacked>() {
        return start(launch, normalize_rows<In, E, kPacked, N>, grid, rows, to, sharing.group);
    });
}

// Weight and bias of a call, as lines.
struct LinedAffine {
    Lined weight, bias;

    explicit LinedAffine(const yoke_launch *launch) : weight(launch), bias(launch) {}
    yoke_status take(const yoke_operand &of_weight, const yoke_operand *of_bias)
    {
        const yoke_status status = weight.take(of_weight, 0, true);
        return status || !of_bias ? status : bias.take(*of_bias, 0, true);
    }
    template <class C>
    void tell(Normalization<C> &to) const
    {
        to.has_weight = is_present(weight.operand());
        to.has_bias = is_present(bias.operand());
    }
};

template <class In, class C = typename In::Value>
static yoke_status normalize(const yoke_launch *launch, const yoke_operand &weight,
                             const yoke_operand *bias, const yoke_operand &out, Normalization<C> to)
{
    const int axis = kernels::norm_axis(launch);
    Lined x(launch), lined_out(launch);
    LinedAffine affine(launch);
    if (const yoke_status status = x.take(launch->operands[0], axis, true)) return status;
    if (const yoke_status status = affine.take(weight, bias)) return status;
    if (const yoke_status status = lined_out.take(out, axis, false)) return status;
    affine.tell(to);
    const yoke_operand *of_x = &x.operand(), *of_weight = affine.weight.or_else(x),
                       *of_bias = affine.bias.or_else(x), *of_out = &lined_out.operand();
    const Rows<4> rows = last_axes<4>({of_x, of_weight, of_bias, of_out}, axis);
    const yoke_status status =
        share_rows<In>(rows.length, rows.all_packed).resident
            ? start_normalize<In>(launch, rows, to)
            : start_normalize<In>(
                  launch, last_axes<6>({of_x, of_weight, of_bias, of_out, of_x, of_x}, axis), to);
    return status ? status : lined_out.give(out);
}

YOKE_KERNEL(layer_norm)
{
    const yoke_operand *o = launch->operands;
    return for_row_format(launch, "x", o[0].dtype, [&]<class In>() {
        using C = typename In::Value;
        return normalize<In>(launch, o[1], &o[2], o[3],
                             {data_of<C>(o[4]), data_of<C>(o[5]), (C)kernels::norm_epsilon(launch),
                              false, false, false});
    });
}

YOKE_KERNEL(rms_norm)
{
    const yoke_operand *o = launch->operands;
    return for_row_format(launch, "x", o[0].dtype, [&]<class In>() {
        using C = typename In::Value;
        return normalize<In>(
            launch, o[1], nullptr, o[2],
            {nullptr, data_of<C>(o[3]), (C)kernels::norm_epsilon(launch), false, false, false});
    });
}

// ---- add_layer_norm -----------------------------------------------------------------------------------------------

template <class In, class C = typename In::Value>
static yoke_status add_and_normalize(const yoke_launch *launch)
{
    const yoke_operand *o = launch->operands;
    const int axis = kernels::norm_axis(launch);
    Lined x(launch), residual(launch), sum(launch), out(launch);
    LinedAffine affine(launch);
    if (const yoke_status status = x.take(o[0], axis, true)) return status;
    if (const yoke_status status = residual.take(o[1], axis, true)) return status;
    if (const yoke_status status = affine.take(o[2], &o[3])) return status;
    if (const yoke_status status = sum.take(o[4], axis, false)) return status;
    if (const yoke_status status = out.take(o[5], axis, false)) return status;
    Normalization<C> to{
        data_of<C>(o[6]), data_of<C>(o[7]), (C)kernels::norm_epsilon(launch), false, false, true};
    affine.tell(to);
    // Absent operands are replaced by the sum, which has their dtype; it is not read in their place.
    const Rows<6> rows =
        last_axes<6>({&x.operand(), affine.weight.or_else(sum), affine.bias.or_else(sum),
                      &out.operand(), &residual.operand(), &sum.operand()},
                     axis);
    if (const yoke_status status = start_normalize<In>(launch, rows, to)) return status;
    const yoke_status status = sum.give(o[4]);
    return status ? status : out.give(o[5]);
}

YOKE_KERNEL(add_layer_norm)
{
    return for_row_format(launch, "x", launch->operands[4].dtype,
                          [&]<class In>() { return add_and_normalize<In>(launch); });
}

YOKE_CUDA_END
