// The products of the fake libcublasLt, on host memory.
#include <type_traits>
#include <vector>

#include "kernels/common/activation.h"
#include "kernels/common/numeric.h"
#include "tests/fakes/cuda/cublaslt_fake.h"

namespace yoke::fake {
namespace {

using namespace yoke::kernels;

float to_tf32(float x)
{
    const uint32_t bits = bit_cast<uint32_t>(x);
    return bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);
}

// Returns a matrix as op(X), row after row.
template <class T, class C>
std::vector<C> unpack(const Layout &layout, const void *data, int64_t batch, bool transposed,
                      bool tf32)
{
    const T *from = static_cast<const T *>(data) + batch * layout.step;
    const uint64_t rows = transposed ? layout.columns : layout.rows,
                   columns = transposed ? layout.rows : layout.columns;
    std::vector<C> to(rows * columns);
    for (uint64_t i = 0; i < rows; ++i)
        for (uint64_t j = 0; j < columns; ++j) {
            const uint64_t at =
                transposed ? i * (uint64_t)layout.leading + j : j * (uint64_t)layout.leading + i;
            C value = load<T>(from[at]);
            if constexpr (std::is_same_v<C, float>)
                if (tf32) value = to_tf32(value);
            to[i * columns + j] = value;
        }
    return to;
}

// Writes an element of the result, R, of a product of T.
template <class T, class R, class C>
void write_one(const Work &work, int64_t batch, uint64_t row, uint64_t column, C value)
{
    const Problem &p = work.problem;
    const Description &product = p.product;
    const int activation = static_cast<int>(product.epilogue) & ~(128 | CUBLASLT_EPILOGUE_BIAS);
    R &d = static_cast<R *>(work.d)[batch * p.d.step + static_cast<int64_t>(column) * p.d.leading +
                                    static_cast<int64_t>(row)];
    if (work.adds) value += load<R>(d);
    if (has_bias(product)) value += load<T>(static_cast<const T *>(product.bias)[row]);
    if (has_aux(product))
        static_cast<T *>(product.aux)[batch * product.aux_step +
                                      static_cast<int64_t>(column) * product.aux_leading +
                                      static_cast<int64_t>(row)] = store<T>(value);
    if (activation == CUBLASLT_EPILOGUE_RELU) value = Relu()(value);
    if (activation == CUBLASLT_EPILOGUE_GELU) value = GeluTanh()(value);
    d = store<R>(value);
}

// Sums the rows of a matrix, `depth` elements each: the gradient of a bias, of the result's type.
template <class R, class C>
void sum_rows(const std::vector<C> &matrix, uint64_t depth, void *out)
{
    for (uint64_t row = 0; row * depth < matrix.size(); ++row) {
        C sum = 0;
        for (uint64_t k = 0; k < depth; ++k) sum += matrix[row * depth + k];
        static_cast<R *>(out)[row] = store<R>(sum);
    }
}

template <class T, class R = T>
void multiply(const Work &work)
{
    using C = compute_type<T>;
    const Problem &p = work.problem;
    const bool tf32 = p.product.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    for (int64_t batch = 0; batch < p.d.batch; ++batch) {
        const auto a = unpack<T, C>(p.a, work.a, batch, p.product.transposed[0], tf32);
        const auto b = unpack<T, C>(p.b, work.b, batch, !p.product.transposed[1], tf32);
        for (uint64_t column = 0; column < p.columns; ++column)
            for (uint64_t row = 0; row < p.rows; ++row) {
                const C *x = &a[row * p.inner], *y = &b[column * p.inner];
                C sum = 0;
                for (uint64_t k = 0; k < p.inner; ++k) sum += x[k] * y[k];
                write_one<T, R>(work, batch, row, column, sum);
            }
        if (has_sums(p.product))
            sum_rows<R>(p.product.epilogue == CUBLASLT_EPILOGUE_BGRADA ? a : b, p.inner,
                        p.product.bias);
    }
}

// Multiplies halves; the result may be float32.
template <class T>
void multiply_halves(const Work &work)
{
    work.problem.d.type == CUDA_R_32F ? multiply<T, float>(work) : multiply<T>(work);
}

}  // namespace

int do_work(void *context)
{
    const Work &work = *static_cast<const Work *>(context);
    runtime().spend(work.microseconds);
    if (work.workspace_bytes) memset(work.workspace, 0xab, work.workspace_bytes);
    switch (work.problem.a.type) {
        case CUDA_R_64F:
            multiply<double>(work);
            break;
        case CUDA_R_16F:
            multiply_halves<f16>(work);
            break;
        case CUDA_R_16BF:
            multiply_halves<bf16>(work);
            break;
        default:
            multiply<float>(work);
    }
    return cudaSuccess;
}

void drop_work(void *context)
{
    delete static_cast<Work *>(context);
}

}  // namespace yoke::fake
