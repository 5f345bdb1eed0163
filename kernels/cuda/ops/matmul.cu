// matmul: products of floats go to cuBLASLt. Products of integers, which wrap, are computed here in tiles.
#include "kernels/common/stand_in.h"
#include "kernels/cuda/ops/gemm.cuh"
#include "kernels/cuda/ops/tiles.cuh"

YOKE_CUDA_BEGIN

using kernels::matmul_product;
using kernels::plan_batches;
using kernels::run_batches;

// ---- integers -------------------------------------------------------------------------------------------------------

// Multiplies integers in tiles of 64 x 64. Sums wrap, so unsigned words of the right size give the right low bits.
template <class T, class C>
__global__ void multiply_tiles(Product p, int64_t across)
{
    YOKE_SHARED(C, a_tile, kTileSizeA);
    YOKE_SHARED(C, b_tile, kTileSizeB);
    const int thread = (int)threadIdx.x, row = thread / kSpread, column = thread % kSpread;
    const int64_t first_row = blockIdx.x / across * kTileSide,
                  first_column = blockIdx.x % across * kTileSide;
    // Threads run along whichever axis of a matrix is dense.
    const bool a_down = p.a.column_stride != 1, b_down = p.b.column_stride != 1;
    for (int64_t batch = blockIdx.y; batch < p.batch; batch += gridDim.y) {
        const T *a = (const T *)p.a.data + batch * p.a.batch_stride,
                *b = (const T *)p.b.data + batch * p.b.batch_stride;
        T *c = (T *)p.c.data + batch * p.c.batch_stride;
        TileSums<C> sums = {};
        for (int64_t depth = 0; depth < p.k; depth += kTileDepth) {
            __syncthreads();
            for (int i = thread; i < kTileSide * kTileDepth; i += kTileThreads) {
                const int r = a_down ? i % kTileSide : i / kTileDepth,
                          d = a_down ? i / kTileSide : i % kTileDepth;
                const int64_t at = first_row + r;
                a_tile[r * kTileStepA + d] =
                    at < p.m && depth + d < p.k
                        ? (C)a[at * p.a.row_stride + (depth + d) * p.a.column_stride]
                        : C(0);
            }
            for (int i = thread; i < kTileSide * kTileDepth; i += kTileThreads) {
                const int r = b_down ? i / kTileDepth : i % kTileSide,
                          d = b_down ? i % kTileDepth : i / kTileSide;
                const int64_t at = first_column + r;
                b_tile[d * kTileStepB + r] =
                    at < p.n && depth + d < p.k
                        ? (C)b[(depth + d) * p.b.row_stride + at * p.b.column_stride]
                        : C(0);
            }
            __syncthreads();
            add_tile<C>(a_tile, b_tile, row, column, sums);
        }
        write_tile<C>(sums, first_row + row, first_column + column, p.m, p.n,
                      [&](int64_t r, int64_t q, int, C sum) {
                          c[r * p.c.row_stride + q * p.c.column_stride] = (T)sum;
                      });
    }
}

template <class T>
static yoke_status multiply_integers(const yoke_launch *launch, const Product &product)
{
    using C = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    const int64_t down = divide_up(product.m, kTileSide), across = divide_up(product.n, kTileSide);
    return start(launch, multiply_tiles<T, C>,
                 {down * across, kTileThreads, 0, min(product.batch, 65535)}, product, across);
}

// ---- floats ---------------------------------------------------------------------------------------------------------

// Limit of launches: more launches cost more than a copy that makes a single launch possible.
constexpr int64_t kManyLaunches = 16;
constexpr uint64_t kLargeCopy = (uint64_t)256 << 20;

// Returns whether cuBLASLt takes an operand for every axis that may become the batch.
static bool takes_batches(const Loop<3> &loop, int which, kernels::Matrix matrix, int64_t rows,
                          int64_t columns)
{
    for (int axis = 0; axis < loop.ndim; axis++) {
        matrix.batch_stride = loop.stride[axis][which];
        if (!cublaslt_takes(matrix, rows, columns)) return false;
    }
    return true;
}

static void put_longest_first(Loop<3> &loop)
{
    for (int axis = 1; axis < loop.ndim; axis++) {
        if (loop.shape[axis] <= loop.shape[0]) continue;
        std::swap(loop.shape[axis], loop.shape[0]);
        std::swap(loop.stride[axis], loop.stride[0]);
    }
}

// Copies x so that it has a separate matrix for every matrix of the result, without broadcasting. *used becomes the
// copy. Makes no copy of a vector, of an x that needs none, or above kLargeCopy bytes.
static yoke_status spread(const yoke_operand &out, const yoke_operand &x, int out_own,
                          int64_t *shape, Dense &dense, const yoke_operand **used)
{
    if (x.ndim < 2) return YOKE_OK;  // a vector is one matrix for all
    const int batch_axes = out.ndim - out_own;
    for (int axis = 0; axis < batch_axes; axis++) shape[axis] = out.shape[axis];
    for (int axis = 0; axis < 2; axis++) shape[batch_axes + axis] = x.shape[x.ndim - 2 + axis];
    int64_t numel = 1;
    for (int axis = 0; axis < batch_axes + 2; axis++) numel *= shape[axis];
    if (numel == x.numel && is_contiguous(x)) return YOKE_OK;
    if ((uint64_t)(numel * dtype_size(x.dtype)) > kLargeCopy) return YOKE_OK;
    *used = &dense.operand();
    return dense.copy(x, shape, batch_axes + 2);
}

// Turns a joined matrix back into a batch of rows, if its rows overlap: they are closer together than their length.
static Product with_even_rows(Product p)
{
    if (p.batch > 1 || cublaslt_takes(p.a, p.m, p.k)) return p;
    p.batch = p.m;
    p.m = 1;
    p.a.batch_stride = p.a.row_stride;
    p.c.batch_stride = p.c.row_stride;
    return p;
}

static yoke_status multiply_floats(const yoke_launch *launch, const yoke_operand &out,
                                   const yoke_operand &x, const yoke_operand &y)
{
    Loop<3> loop;
    plan_batches(loop, out, x, y);
    put_longest_first(loop);
    return run_batches(loop, matmul_product(x, y, out), [&](const Product &given) {
        const Product each = with_even_rows(given);
        bool done = false;
        if (const yoke_status status = cublaslt_multiply(launch, {each}, &done)) return status;
        if (done) return (yoke_status)YOKE_OK;
        return fail(
            YOKE_E_UNSUPPORTED, 0,
            "%s: cuBLASLt has no algorithm for %lld products of %lld x %lld by %lld x %lld matrices of %s",
            op_name(launch->op), (long long)each.batch, (long long)each.m, (long long)each.k,
            (long long)each.k, (long long)each.n, dtype_name(each.dtype));
    });
}

// Multiplies floats. First copies operands that cuBLASLt does not support in place. If the product needs many
// launches, also copies operands that are broadcast or not contiguous, up to kLargeCopy bytes. If cuBLASLt does not
// support the result in place, the product goes to a buffer first.
static yoke_status prepare(const yoke_launch *launch)
{
    const yoke_operand *x = &launch->operands[0], *y = &launch->operands[1],
                       *out = &launch->operands[2];
    const Product p = matmul_product(*x, *y, *out);
    Loop<3> loop;
    plan_batches(loop, *out, *x, *y);
    Dense dense_x(launch), dense_y(launch), dense_out(launch);
    int64_t x_shape[YOKE_MAX_NDIM + 2], y_shape[YOKE_MAX_NDIM + 2];
    yoke_status status = YOKE_OK;
    if (!takes_batches(loop, 0, p.c, p.m, p.n)) {
        status = dense_out.reserve(out->shape, out->ndim, out->dtype);
        out = &dense_out.operand();
    }
    put_longest_first(loop);
    const bool many = loop.numel > kManyLaunches * loop.shape[0];
    const int out_own = (x->ndim > 1) + (y->ndim > 1);
    if (!status && !takes_batches(loop, 1, p.a, p.m, p.k)) {
        status = dense_x.copy(*x, x->shape, x->ndim);
        x = &dense_x.operand();
    } else if (!status && many) {
        status = spread(*out, *x, out_own, x_shape, dense_x, &x);
    }
    if (!status && !takes_batches(loop, 2, p.b, p.k, p.n)) {
        status = dense_y.copy(*y, y->shape, y->ndim);
        y = &dense_y.operand();
    } else if (!status && many) {
        status = spread(*out, *y, out_own, y_shape, dense_y, &y);
    }
    if (!status) status = multiply_floats(launch, *out, *x, *y);
    if (status || out == &launch->operands[2]) return status;
    return copy_operand(launch, launch->operands[2], *out);
}

static yoke_status fill_zero(const yoke_launch *launch, const yoke_operand &out)
{
    return copy_operand(launch, out, kernels::single_value(out.dtype));
}

YOKE_KERNEL(matmul)
{
    const yoke_operand &x = launch->operands[0], &y = launch->operands[1],
                       &out = launch->operands[2];
    if (y.dtype != x.dtype) return bad_dtype(launch, "y", y.dtype);
    if (out.numel == 0) return YOKE_OK;
    if (x.shape[x.ndim - 1] == 0) return fill_zero(launch, out);
    return for_number(launch, "x", x.dtype, [&]<class T>() {
        if constexpr (is_float<T>) {
            return prepare(launch);
        } else {
            Loop<3> loop;
            plan_batches(loop, out, x, y);
            put_longest_first(loop);
            return run_batches(loop, matmul_product(x, y, out), [&](const Product &each) {
                return multiply_integers<T>(launch, each);
            });
        }
    });
}

YOKE_CUDA_END
