// softmax and log_softmax along any axis, and their gradients. If a group of threads holds the row, each element is
// read once and written once. If the row is longer, or neighbours in memory belong to different rows, each element is
// read twice.
#include "kernels/common/loss.h"
#include "kernels/cuda/ops/approximate.cuh"
#include "kernels/cuda/ops/rows.cuh"

YOKE_CUDA_BEGIN

using kernels::Larger;
using kernels::SoftmaxState;

// ---- computation of a row -----------------------------------------------------------------------------------------
//
// An Op reads kInputs operands; elements beyond their ends are kBeyond. resident() computes the result of a whole
// row. For a longer row, push() makes a State chunk by chunk, combine() joins the threads' states, and an Op made of
// the State has apply(). Both leave the result in place of the first input.

// Softmax of a row, or with `logs` its logarithm. If all elements are -infinity, or an element is infinity, the
// differences are NaN and so is the row.
template <class In>
struct Softmax {
    using C = typename In::Value;
    using State = SoftmaxState<C>;
    static constexpr int kInputs = 1;
    static constexpr C kBeyond = -(C)kernels::kInfinity;

    __device__ static State init() { return State::init(); }
    __device__ static State combine(State a, State b) { return State::combine(a, b); }

    template <int E>
    __device__ static C largest(const C (&x)[E])
    {
        C top = x[0];
        YOKE_UNROLL
        for (int i = 1; i < E; i++) top = Larger()(top, x[i]);
        return Larger()(-(C)kernels::kInfinity, top);
    }
    template <int E>
    __device__ static void resident(C (&in)[1][E], int group, bool logs)
    {
        C(&x)[E] = in[0];
        const C top = reduce_group(largest(x), group, -(C)kernels::kInfinity, Larger());
        C sum = (C)0;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) {
            const C e = exp_as_stored<In>(x[i] - top);
            sum += e;
            if (!logs) x[i] = e;
        }
        sum = sum_group(sum, group);
        const C by = logs ? kernels::log(sum) : (C)1 / sum;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) x[i] = logs ? (x[i] - top) - by : x[i] * by;
    }
    template <int E>
    __device__ static State push(State s, const C (&in)[1][E], bool)
    {
        State next{Larger()(s.max, largest(in[0])), (C)0};
        const C shift = next.shift();
        C sum = (C)0;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) sum += exp_as_stored<In>(in[0][i] - shift);
        next.sum = s.sum * exp_as_stored<In>(s.max - shift) + sum;
        return next;
    }

    C top, by;
    bool logs;
    __device__ Softmax(State s, bool wants_logs)
        : top(s.max), by(wants_logs ? kernels::log(s.sum) : (C)1 / s.sum), logs(wants_logs)
    {
    }
    template <int E>
    __device__ void apply(C (&in)[1][E]) const
    {
        YOKE_UNROLL
        for (int i = 0; i < E; i++)
            in[0][i] = logs ? (in[0][i] - top) - by : exp_as_stored<In>(in[0][i] - top) * by;
    }
};

// Gradient of both ops, from g (input 0) and the op's result (input 1).
template <class In>
struct SoftmaxGradient {
    using C = typename In::Value;
    using State = C;
    static constexpr int kInputs = 2;
    static constexpr C kBeyond = (C)0;

    __device__ static C init() { return (C)0; }
    __device__ static C combine(C a, C b) { return a + b; }
    template <int E>
    __device__ static C push(C s, const C (&in)[2][E], bool of_logs)
    {
        C chunk = (C)0;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) chunk += of_logs ? in[0][i] : in[0][i] * in[1][i];
        return s + chunk;
    }
    template <int E>
    __device__ static void resident(C (&in)[2][E], int group, bool of_logs)
    {
        SoftmaxGradient(sum_group(push((C)0, in, of_logs), group), of_logs).apply(in);
    }

    C sum;
    bool of_logs;
    __device__ SoftmaxGradient(C s, bool logs) : sum(s), of_logs(logs) {}
    template <int E>
    __device__ void apply(C (&in)[2][E]) const
    {
        YOKE_UNROLL
        for (int i = 0; i < E; i++)
            in[0][i] = of_logs ? kernels::log_softmax_backward(in[0][i], in[1][i], sum)
                               : kernels::softmax_backward(in[0][i], in[1][i], sum);
    }
};

// ---- kernels ------------------------------------------------------------------------------------------------------

template <class Op, class In, bool kPacked, int E, int N, class C>
__device__ inline void take_inputs(const Rows<N> &rows, const Place<N> &place, const Member &member,
                                   int64_t first, C (&x)[Op::kInputs][E])
{
    Held<In, E> held[Op::kInputs];
    YOKE_UNROLL
    for (int k = 0; k < Op::kInputs; k++)
        Chunk<In, E, kPacked>(rows, k, place.data[k], first).load_or(member, Op::kBeyond, held[k]);
    YOKE_UNROLL
    for (int k = 0; k < Op::kInputs; k++)
        Chunk<In, E, kPacked>(rows, k, place.data[k], first)
            .take_all(member, held[k], Op::kBeyond, x[k]);
}

// Blocks that a multiprocessor must hold at once: as many as the registers for the elements allow.
template <class Op, class In, int E>
inline constexpr int kBlocks =
    kFitting<((E > kFew<In> || std::is_same_v<In, Doubles>)&&Op::kInputs > 1 ? 1 : 2),
             kMostThreads>;

template <class Op, class In, int E, bool kPacked>
__global__ void __launch_bounds__(kMostThreads, (kPacked ? kBlocks<Op, In, E> : 1))
    resident_rows(Rows<Op::kInputs + 1> rows, int group, bool logs)
{
    constexpr int kOut = Op::kInputs;
    const Member member(group);
    for (int64_t first = blockIdx.x * member.groups(); first < rows.count;
         first += gridDim.x * member.groups()) {
        const int64_t row = first + member.number();
        const Place<kOut + 1> place = rows.place(min(row, rows.count - 1));
        typename In::Value x[kOut][E];
        take_inputs<Op, In, kPacked>(rows, place, member, 0, x);
        Op::resident(x, group, logs);
        if (row < rows.count)
            Chunk<In, E, kPacked>(rows, kOut, place.data[kOut], 0).put(member, x[0]);
    }
}

// Computes long rows. Each block goes over its row twice, a chunk at a time.
template <class Op, class In>
__global__ void __launch_bounds__(kMostThreads) long_rows(Rows<Op::kInputs + 1> rows, bool logs)
{
    using State = typename Op::State;
    constexpr int kOut = Op::kInputs, E = kRowPack<In>;
    const Member member((int)blockDim.x);
    const int64_t chunk = (int64_t)E * blockDim.x;
    for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
        const Place<kOut + 1> place = rows.place(row);
        typename In::Value x[kOut][E];
        State state = Op::init();
        for (int64_t first = 0; first < rows.length; first += chunk) {
            take_inputs<Op, In, false>(rows, place, member, first, x);
            state = Op::push(state, x, logs);
        }
        const Op op(reduce_block(state, Op::init(),
                                 [](const State &a, const State &b) { return Op::combine(a, b); }),
                    logs);
        for (int64_t first = 0; first < rows.length; first += chunk) {
            take_inputs<Op, In, false>(rows, place, member, first, x);
            op.apply(x);
            Chunk<In, E, false>(rows, kOut, place.data[kOut], first).put(member, x[0]);
        }
    }
}

// Computes rows whose elements are apart while neighbouring rows are together. Each warp lane has a row, and the
// warps of the block share the row's elements.
template <class Op, class In>
__global__ void __launch_bounds__(kThreads) column_rows(Rows<Op::kInputs + 1> rows, bool logs)
{
    using C = typename In::Value;
    using State = typename Op::State;
    constexpr int kOut = Op::kInputs, E = kRowPack<In>;
    YOKE_SHARED(State, states, kMostThreads);
    const int in_warp = place_in_warp(), strip = warp_of_thread(), strips = (int)blockDim.x / kWarp;
    for (int64_t first = (int64_t)blockIdx.x * kWarp; first < rows.count;
         first += (int64_t)gridDim.x * kWarp) {
        const bool is_row = first + in_warp < rows.count;
        const Place<kOut + 1> place = rows.place(is_row ? first + in_warp : first);
        C x[kOut][E];
        const auto take_from = [&](int64_t begin) {
            Stored<In, 1> stored[kOut][E];
            YOKE_UNROLL
            for (int k = 0; k < kOut; k++) YOKE_UNROLL
            for (int j = 0; j < E; j++)
                if (begin + j < rows.length)
                    stored[k][j].load(rows.at(place.data[k], k, begin + j), rows.size[k]);
            YOKE_UNROLL
            for (int k = 0; k < kOut; k++) YOKE_UNROLL
            for (int j = 0; j < E; j++) {
                C value[1] = {Op::kBeyond};
                if (begin + j < rows.length) stored[k][j].unpack(rows.dtype[k], value);
                x[k][j] = value[0];
            }
        };
        State state = Op::init();
        for (int64_t begin = strip * E; begin < rows.length; begin += strips * E) {
            take_from(begin);
            state = Op::push(state, x, logs);
        }
        __syncthreads();
        states[threadIdx.x] = state;
        __syncthreads();
        state = Op::init();
        for (int s = 0; s < strips; s++)
            state = Op::combine(state, (State)states[s * kWarp + in_warp]);
        const Op op(state, logs);
        for (int64_t begin = strip * E; is_row && begin < rows.length; begin += strips * E) {
            take_from(begin);
            op.apply(x);
            YOKE_UNROLL
            for (int j = 0; j < E; j++)
                if (begin + j < rows.length)
                    put_one<In>(rows.dtype[kOut], rows.at(place.data[kOut], kOut, begin + j),
                                x[0][j]);
        }
    }
}

// ---- launches -----------------------------------------------------------------------------------------------------

static int64_t size_of_step(int64_t step)
{
    return step < 0 ? -step : step;
}

// Returns whether neighbours in memory belong to different rows. Fewer than 8 rows, and shorter rows, are not worth
// this.
template <int N>
static bool are_columns(const Rows<N> &rows)
{
    const int64_t along = rows.step[0], across = rows.outer.stride[0][0];
    return rows.length >= 8 && rows.outer.shape[0] >= 8 && across != 0 &&
           size_of_step(across) < size_of_step(along);
}

template <class Op, class In>
static yoke_status start_rows(const yoke_launch *launch, const Rows<Op::kInputs + 1> &rows,
                              bool logs)
{
    if (rows.count == 0 || rows.length == 0) return YOKE_OK;
    if (are_columns(rows))
        return start(launch, column_rows<Op, In>,
                     {min(divide_up(rows.count, kWarp), 0x7fffffff), block_size(kThreads)}, rows,
                     logs);
    const Sharing sharing = share_rows<In>(rows.length, rows.all_packed);
    const Grid grid = row_grid(launch, rows.count, sharing);
    if (!sharing.resident) return start(launch, long_rows<Op, In>, grid, rows, logs);
    return for_sharing<In>(sharing, rows.all_packed, [&]<int E, bool kPacked>() {
        return start(launch, resident_rows<Op, In, E, kPacked>, grid, rows, sharing.group, logs);
    });
}

static yoke_status forward(const yoke_launch *launch, bool logs)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const Rows<2> rows = along_axis<2>({&x, &out}, (int)launch->params[0].v.i);
    return for_row_format(launch, "x", x.dtype, [&]<class In>() {
        return start_rows<Softmax<In>, In>(launch, rows, logs);
    });
}

static yoke_status backward(const yoke_launch *launch, bool of_logs)
{
    const yoke_operand *o = launch->operands;
    const Rows<3> rows = along_axis<3>({&o[0], &o[1], &o[2]}, (int)launch->params[0].v.i);
    return for_row_format(launch, "grad", o[0].dtype, [&]<class In>() {
        return start_rows<SoftmaxGradient<In>, In>(launch, rows, of_logs);
    });
}

YOKE_KERNEL(softmax)
{
    return forward(launch, false);
}

YOKE_KERNEL(log_softmax)
{
    return forward(launch, true);
}

YOKE_KERNEL(_softmax_backward)
{
    return backward(launch, false);
}

YOKE_KERNEL(_log_softmax_backward)
{
    return backward(launch, true);
}

YOKE_CUDA_END
