#include "kernels/cuda/host/cublaslt_request.h"

#include <algorithm>
#include <utility>

#include "kernels/common/operand.h"

namespace yoke::cuda {

namespace {

Matrix transpose(const Matrix &x)
{
    return {x.data, x.batch_stride, x.column_stride, x.row_stride};
}

// Returns the matrix with new strides for axes of length 1, so these axes do not decide between row-major and
// column-major.
Matrix settle(Matrix x, int64_t rows, int64_t columns)
{
    if (columns == 1 && x.row_stride == 1 && rows > 1) {
        x.column_stride = rows;  // column-major, so that the leading dimension is no 1
    } else {
        if (columns == 1) x.column_stride = 1;
        if (rows == 1) x.row_stride = x.column_stride == 1 ? columns : 1;
    }
    return x;
}

bool is_row_major(const Matrix &x, int64_t columns)
{
    return x.column_stride == 1 && x.row_stride >= columns;
}

int8_t alignment_of(const void *pointer)
{
    const int zeros = __builtin_ctzll(reinterpret_cast<uintptr_t>(pointer) | 256);
    return static_cast<int8_t>(zeros);
}

// Returns the step after the product. Row sums are those of the product's a: cuBLASLt's B, or A if `swapped`.
cublasLtEpilogue_t epilogue_of(const Gemm &gemm, bool swapped)
{
    if (gemm.row_sums) return swapped ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
    int epilogue = gemm.activation == Activation::kRelu       ? CUBLASLT_EPILOGUE_RELU
                   : gemm.activation == Activation::kGeluTanh ? CUBLASLT_EPILOGUE_GELU
                                                              : 0;
    if (gemm.product.bias) epilogue |= CUBLASLT_EPILOGUE_BIAS;
    if (gemm.before) epilogue |= CUBLASLT_EPILOGUE_GELU_AUX & ~CUBLASLT_EPILOGUE_GELU;
    return static_cast<cublasLtEpilogue_t>(epilogue ? epilogue : CUBLASLT_EPILOGUE_DEFAULT);
}

}  // namespace

// Writes operand i's leading dimension, batch step and transposition into the key. A row-major matrix, read as
// column-major, is its own transpose, so it is not marked as transposed.
void Request::place(int i, const Matrix &given, int64_t rows, int64_t columns, int64_t batch)
{
    const Matrix x = settle(given, rows, columns);
    const bool row_major = is_row_major(x, columns);
    key.leading[i] = row_major ? x.row_stride : x.column_stride;
    key.step[i] = batch > 1 ? x.batch_stride : 0;
    key.transposed[i] = !row_major;
}

Request::Request(const yoke_launch *launch, const Gemm &gemm)
    : vector(gemm.row_sums ? gemm.row_sums : gemm.product.bias),
      before(gemm.before),
      adds(gemm.adds)
{
    Product p = gemm.product;
    const bool plain = !p.bias && !before && gemm.activation == Activation::kNone;
    // If the result is column-major, such as a single column, no exchange is needed. A bias runs along rows, so it
    // needs the exchange.
    const bool swapped = plain && p.c.row_stride == 1 && (p.n == 1 || !is_row_major(p.c, p.n));
    if (swapped) {
        std::swap(p.m, p.n);
        std::swap(p.a, p.b);
        p.a = transpose(p.a);
        p.b = transpose(p.b);
        p.c = transpose(p.c);
    }
    a = p.b.data;
    b = p.a.data;
    d = p.c.data;
    key.rows = p.n;
    key.columns = p.m;
    key.inner = p.k;
    key.batch = p.batch;
    place(0, p.b, p.k, p.n, p.batch);
    place(1, p.a, p.m, p.k, p.batch);
    key.leading[2] = p.m == 1 ? p.n : p.c.row_stride;
    key.step[2] = p.batch > 1 ? p.c.batch_stride : 0;
    key.dtype = p.dtype;
    key.epilogue = epilogue_of(gemm, swapped);
    key.wide = gemm.wide;
    key.tf32 = p.dtype == YOKE_F32 && launch->flags & YOKE_LAUNCH_TF32;
    key.untried = (launch->flags & YOKE_LAUNCH_DETERMINISTIC) != 0;
    const void *const pointers[] = {a, b, d, vector, before};
    for (int i = 0; i < 5; ++i)
        key.alignment[i] = pointers[i] ? alignment_of(pointers[i]) : int8_t(0);
}

Gemm part_of(const Gemm &gemm, int64_t first, int64_t count)
{
    Gemm part = gemm;
    const int64_t each = first * kernels::dtype_size(gemm.product.dtype);
    const auto move = [each](void *&data, int64_t stride) {
        if (data) data = static_cast<char *>(data) + each * stride;
    };
    Product &p = part.product;
    p.batch = count;
    move(p.a.data, p.a.batch_stride);
    move(p.b.data, p.b.batch_stride);
    move(p.c.data, p.c.batch_stride);
    move(part.before, p.c.batch_stride);
    return part;
}

bool cublaslt_takes(const Matrix &matrix, int64_t rows, int64_t columns)
{
    const Matrix x = settle(matrix, rows, columns);
    return x.batch_stride >= 0 && (is_row_major(x, columns) || is_row_major(transpose(x), rows));
}

}  // namespace yoke::cuda
