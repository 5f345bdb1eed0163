// softmax and log_softmax along any axis, and their gradients: one read and one write of each element where a group
// of threads holds the row, two reads where it is longer, or where neighbours in memory belong to different rows.
#include "kernels/common/loss.h"
#include "kernels/cuda/rows.cuh"

YOKE_CUDA_BEGIN

using kernels::exp_not_large;
using kernels::Larger;
using kernels::SoftmaxState;

// ---- what is made of a row ----------------------------------------------------------------------------------------
//
// An Op reads kInputs operands, behind whose ends stands beyond(). resident() makes a whole row's result. Of a longer
// one, push() makes a State chunk by chunk, combine() joins the threads', and an Op made of it has apply().

struct NoSetting {};

// Where all are -infinity, or one is infinity, the differences are NaN and so is the row.
template <class T, bool kLogs>
struct Softmax {
    using C = compute_type<T>;
    using State = SoftmaxState<C>;
    using Setting = NoSetting;
    static constexpr int kInputs = 1;

    __device__ static T beyond() { return store<T>(-(C)kernels::kInfinity); }
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
    __device__ static void resident(const Held<T, E> (&in)[1], int group, Setting, C (&x)[E])
    {
        in[0].values(x);
        const C top = reduce_group(largest(x), group, -(C)kernels::kInfinity, Larger());
        C sum = (C)0;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) {
            const C e = exp_not_large(x[i] - top);
            sum += e;
            if (!kLogs) x[i] = e;
        }
        sum = sum_group(sum, group);
        const C by = kLogs ? kernels::log(sum) : (C)1 / sum;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) x[i] = kLogs ? (x[i] - top) - by : x[i] * by;
    }
    template <int E>
    __device__ static State push(State s, const Held<T, E> (&in)[1], Setting)
    {
        C x[E];
        in[0].values(x);
        State next{Larger()(s.max, largest(x)), (C)0};
        const C shift = next.shift();
        C sum = (C)0;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) sum += exp_not_large(x[i] - shift);
        next.sum = s.sum * exp_not_large(s.max - shift) + sum;
        return next;
    }

    C top, by;
    __device__ Softmax(State s, Setting)
        : top(s.max), by(kLogs ? kernels::log(s.sum) : (C)1 / s.sum)
    {
    }
    template <int E>
    __device__ void apply(const Held<T, E> (&in)[1], C (&x)[E]) const
    {
        in[0].values(x);
        YOKE_UNROLL
        for (int i = 0; i < E; i++)
            x[i] = kLogs ? (x[i] - top) - by : exp_not_large(x[i] - top) * by;
    }
};

// The gradients: of g (input 0) and of what the op gave (input 1).
template <class T>
struct SoftmaxGradient {
    using C = compute_type<T>;
    using State = C;
    using Setting = bool;  // of log_softmax
    static constexpr int kInputs = 2;

    __device__ static T beyond() { return store<T>((C)0); }
    __device__ static C init() { return (C)0; }
    __device__ static C combine(C a, C b) { return a + b; }
    template <int E>
    __device__ static C push(C s, const Held<T, E> (&in)[2], bool of_logs)
    {
        C chunk = (C)0;
        YOKE_UNROLL
        for (int i = 0; i < E; i++) chunk += of_logs ? in[0][i] : in[0][i] * in[1][i];
        return s + chunk;
    }
    template <int E>
    __device__ static void resident(const Held<T, E> (&in)[2], int group, bool of_logs, C (&x)[E])
    {
        SoftmaxGradient(sum_group(push((C)0, in, of_logs), group), of_logs).apply(in, x);
    }

    C sum;
    bool of_logs;
    __device__ SoftmaxGradient(C s, bool logs) : sum(s), of_logs(logs) {}
    template <int E>
    __device__ void apply(const Held<T, E> (&in)[2], C (&x)[E]) const
    {
        if (of_logs) {
            YOKE_UNROLL
            for (int i = 0; i < E; i++)
                x[i] = kernels::log_softmax_backward(in[0][i], in[1][i], sum);
        } else {
            YOKE_UNROLL
            for (int i = 0; i < E; i++) x[i] = kernels::softmax_backward(in[0][i], in[1][i], sum);
        }
    }
};

// ---- kernels ------------------------------------------------------------------------------------------------------

template <class Op, bool kPacked, class T, int E, int N>
__device__ inline void load_inputs(const Rows<N> &rows, const Place<N> &place, const Member &member,
                                   int64_t first, Held<T, E> (&in)[Op::kInputs])
{
    Chunk<T, E, kPacked>(rows, 0, place.data[0], first).load(member, Op::beyond(), in[0]);
    if constexpr (Op::kInputs == 2)
        Chunk<T, E, kPacked>(rows, 1, place.data[1], first).load(member, Op::beyond(), in[1]);
}

// How many blocks a multiprocessor shall hold: what the registers for the elements leave room for.
template <class Op, class T, int E>
inline constexpr int kBlocks = (E > kFew<T> || sizeof(T) == 8 ? 3 : 4) - Op::kInputs;

template <class Op, class T, int E, bool kPacked>
__global__ void __launch_bounds__(kMostThreads, (kPacked ? kBlocks<Op, T, E> : 1))
    resident_rows(Rows<Op::kInputs + 1> rows, int group, typename Op::Setting setting)
{
    constexpr int kOut = Op::kInputs;
    const Member member(group);
    const int64_t rows_a_block = blockDim.x / group;
    for (int64_t first = blockIdx.x * rows_a_block; first < rows.count;
         first += gridDim.x * rows_a_block) {
        const int64_t row = first + threadIdx.x / group;
        const Place<kOut + 1> place = rows.outer.at(min(row, rows.count - 1));
        Held<T, E> in[kOut];
        load_inputs<Op, kPacked>(rows, place, member, 0, in);
        compute_type<T> x[E];
        Op::resident(in, group, setting, x);
        if (row < rows.count)
            Chunk<T, E, kPacked>(rows, kOut, place.data[kOut], 0).store(member, x);
    }
}

// Each block goes over its row twice, a chunk at a time.
template <class Op, class T>
__global__ void __launch_bounds__(kMostThreads)
    long_rows(Rows<Op::kInputs + 1> rows, typename Op::Setting setting)
{
    using State = typename Op::State;
    constexpr int kOut = Op::kInputs, E = kFew<T>;
    const Member member((int)blockDim.x);
    const int64_t chunk = (int64_t)E * blockDim.x;
    for (int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
        const Place<kOut + 1> place = rows.outer.at(row);
        Held<T, E> in[kOut];
        State state = Op::init();
        for (int64_t first = 0; first < rows.length; first += chunk) {
            load_inputs<Op, false>(rows, place, member, first, in);
            state = Op::push(state, in, setting);
        }
        const Op op(reduce_block(state, Op::init(),
                                 [](const State &a, const State &b) { return Op::combine(a, b); }),
                    setting);
        for (int64_t first = 0; first < rows.length; first += chunk) {
            load_inputs<Op, false>(rows, place, member, first, in);
            compute_type<T> x[E];
            op.apply(in, x);
            Chunk<T, E, false>(rows, kOut, place.data[kOut], first).store(member, x);
        }
    }
}

// Rows whose elements lie apart while those of neighbouring rows lie together: each lane has a row, the warps of the
// block share its elements.
template <class Op, class T>
__global__ void __launch_bounds__(kThreads)
    column_rows(Rows<Op::kInputs + 1> rows, typename Op::Setting setting)
{
    using State = typename Op::State;
    constexpr int kOut = Op::kInputs, E = kPackLength<T>;
    YOKE_SHARED(State, states, kMostThreads);
    const int lane = lane_of_thread(), strip = warp_of_thread(), strips = (int)blockDim.x / kWarp;
    for (int64_t first = (int64_t)blockIdx.x * kWarp; first < rows.count;
         first += (int64_t)gridDim.x * kWarp) {
        const bool is_row = first + lane < rows.count;
        const Place<kOut + 1> place = rows.outer.at(is_row ? first + lane : first);
        Held<T, E> in[kOut];
        const auto load_from = [&](int64_t begin) {
            YOKE_UNROLL
            for (int k = 0; k < kOut; k++) YOKE_UNROLL
            for (int j = 0; j < E; j++) {
                const int64_t at = begin + j;
                in[k].packs[0].at[j] =
                    at < rows.length ? *(const T *)rows.at(place.data[k], k, at) : Op::beyond();
            }
        };
        State state = Op::init();
        for (int64_t begin = strip * E; begin < rows.length; begin += strips * E) {
            load_from(begin);
            state = Op::push(state, in, setting);
        }
        __syncthreads();
        states[threadIdx.x] = state;
        __syncthreads();
        state = Op::init();
        for (int s = 0; s < strips; s++)
            state = Op::combine(state, (State)states[s * kWarp + lane]);
        const Op op(state, setting);
        for (int64_t begin = strip * E; is_row && begin < rows.length; begin += strips * E) {
            load_from(begin);
            compute_type<T> x[E];
            op.apply(in, x);
            const Pack<T, E> results = pack_of<T, E>(x);
            YOKE_UNROLL
            for (int j = 0; j < E; j++)
                if (begin + j < rows.length)
                    *(T *)rows.at(place.data[kOut], kOut, begin + j) = results.at[j];
        }
    }
}

// ---- launches -----------------------------------------------------------------------------------------------------

static int64_t size_of_step(int64_t step)
{
    return step < 0 ? -step : step;
}

// Whether neighbours in memory belong to different rows.
template <int N>
static bool are_columns(const Rows<N> &rows)
{
    const int64_t along = rows.step[0], across = rows.outer.stride[0][0];
    return rows.length >= 8 && rows.outer.shape[0] >= 8 && across != 0 &&
           size_of_step(across) < size_of_step(along);
}

template <class Op, class T>
static yoke_status start_rows(const yoke_launch *launch, const Rows<Op::kInputs + 1> &rows,
                              typename Op::Setting setting)
{
    if (rows.count == 0 || rows.length == 0) return YOKE_OK;
    if (are_columns(rows))
        return start(launch, column_rows<Op, T>,
                     {min(divide_up(rows.count, kWarp), 0x7fffffff), block_size(kThreads)}, rows,
                     setting);
    const Sharing sharing = share_rows<T>(rows.length, rows.all_packed);
    const Grid grid = row_grid(rows.count, sharing);
    if (!sharing.resident) return start(launch, long_rows<Op, T>, grid, rows, setting);
    return for_sharing<T>(sharing, rows.all_packed, [&]<int E, bool kPacked>() {
        return start(launch, resident_rows<Op, T, E, kPacked>, grid, rows, sharing.group, setting);
    });
}

template <bool kLogs>
static yoke_status forward(const yoke_launch *launch)
{
    const yoke_operand &x = launch->operands[0], &out = launch->operands[1];
    const Rows<2> rows = along_axis<2>({&x, &out}, (int)launch->params[0].v.i);
    return for_float(launch, "x", x.dtype, [&]<class T>() {
        return start_rows<Softmax<T, kLogs>, T>(launch, rows, NoSetting());
    });
}

static yoke_status backward(const yoke_launch *launch, bool of_logs)
{
    const yoke_operand *o = launch->operands;
    const Rows<3> rows = along_axis<3>({&o[0], &o[1], &o[2]}, (int)launch->params[0].v.i);
    return for_float(launch, "grad", o[0].dtype, [&]<class T>() {
        return start_rows<SoftmaxGradient<T>, T>(launch, rows, of_logs);
    });
}

YOKE_KERNEL(softmax)
{
    return forward<false>(launch);
}

YOKE_KERNEL(log_softmax)
{
    return forward<true>(launch);
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
