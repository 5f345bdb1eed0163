// The graphs of the fake libcudnn_graph, computed on host memory in the order of operations.
#include <cmath>
#include <cstring>

#include "kernels/common/numeric.h"
#include "tests/fakes/cuda/beside_driver.h"
#include "tests/fakes/cuda/cudnn_fake.h"

namespace yoke::fake {
namespace {

using namespace yoke::kernels;
using Numbers = std::vector<float>;  // elements of a tensor, row after row of the dimensions

struct Shape {
    std::vector<int64_t> dims, strides;
    cudnnDataType_t type;

    explicit Shape(const CudnnObject &tensor)
        : dims(tensor.list(CUDNN_ATTR_TENSOR_DIMENSIONS)),
          strides(tensor.list(CUDNN_ATTR_TENSOR_STRIDES)),
          type(tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE))
    {
    }
    size_t at(int64_t a, int64_t b, int64_t c, int64_t d) const
    {
        return static_cast<size_t>(((a * dims[1] + b) * dims[2] + c) * dims[3] + d);
    }
    size_t count() const { return static_cast<size_t>(dims[0] * dims[1] * dims[2] * dims[3]); }
    // run(number, place in memory), element by element.
    template <class F>
    void each(const F &run) const
    {
        size_t number = 0;
        for (int64_t a = 0; a < dims[0]; ++a)
            for (int64_t b = 0; b < dims[1]; ++b)
                for (int64_t c = 0; c < dims[2]; ++c)
                    for (int64_t d = 0; d < dims[3]; ++d)
                        run(number++,
                            a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
    }
};

template <class T>
Numbers read_as(const Shape &shape, const void *data)
{
    Numbers numbers(shape.count());
    shape.each([&](size_t i, int64_t at) {
        numbers[i] = static_cast<float>(load<T>(static_cast<const T *>(data)[at]));
    });
    return numbers;
}

Numbers read_numbers(const Shape &shape, const void *data)
{
    switch (shape.type) {
        case CUDNN_DATA_HALF:
            return read_as<f16>(shape, data);
        case CUDNN_DATA_BFLOAT16:
            return read_as<bf16>(shape, data);
        default:
            return read_as<float>(shape, data);
    }
}

template <class T>
void write_as(const Shape &shape, const Numbers &numbers, void *data)
{
    shape.each([&](size_t i, int64_t at) { static_cast<T *>(data)[at] = store<T>(numbers[i]); });
}

void write_numbers(const Shape &shape, const Numbers &numbers, void *data)
{
    switch (shape.type) {
        case CUDNN_DATA_HALF:
            return write_as<f16>(shape, numbers, data);
        case CUDNN_DATA_BFLOAT16:
            return write_as<bf16>(shape, numbers, data);
        default:
            return write_as<float>(shape, numbers, data);
    }
}

float to_tf32(float x)
{
    const uint32_t bits = bit_cast<uint32_t>(x);
    return bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu);
}

class Run {
public:
    explicit Run(const CudnnWork &work) : work_(work)
    {
        for (const auto &[name, number] : work.numbers) numbers_[name] = {number};
    }
    void all()
    {
        for (const CudnnRef &operation : work_.graph->values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).refs)
            one(*operation);
    }

private:
    const Numbers &numbers(const CudnnObject &tensor)
    {
        const auto name = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
        const auto known = numbers_.find(name);
        if (known != numbers_.end()) return known->second;
        return numbers_[name] = read_numbers(Shape(tensor), work_.addresses.at(name));
    }
    Numbers factors(const CudnnObject &tensor)
    {
        Numbers all = numbers(tensor);
        if (work_.tf32)
            for (float &x : all) x = to_tf32(x);
        return all;
    }
    void keep(const CudnnObject &tensor, Numbers all)
    {
        const auto name = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
        const Shape shape(tensor);
        if (!tensor.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
            write_numbers(shape, all, work_.addresses.at(name));
            all = read_numbers(shape, work_.addresses.at(name));
        }
        if (shape.type == CUDNN_DATA_HALF)
            for (float &x : all) x = static_cast<float>(load<f16>(store<f16>(x)));
        numbers_[name] = std::move(all);
    }
    void one(const CudnnObject &operation);
    void convolve(const CudnnObject &operation, int window, int beta, int x, int w, int y);
    void point(const CudnnObject &operation);
    bool is_accumulator(const CudnnObject &tensor) const;
    void multiply(const CudnnObject &operation);
    void reduce(const CudnnObject &operation);
    void reshape(const CudnnObject &operation);

    const CudnnWork &work_;
    std::map<int64_t, Numbers> numbers_;
};

// Sums products over all triples of x, w and y. The triples are equal for each of the three tensors that may get the
// sum.
void sum_products(const CudnnObject &window, const Shape &xs, const Shape &ws, const Shape &ys,
                  const Numbers &x, const Numbers &w, const Numbers &y,
                  cudnnBackendDescriptorType_t kind, Numbers &sum)
{
    const auto pad = window.list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
               apart = window.list(CUDNN_ATTR_CONVOLUTION_DILATIONS),
               step = window.list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const int64_t depth = ws.dims[1], each = ws.dims[0] / (xs.dims[1] / depth);
    for (int64_t n = 0; n < ys.dims[0]; ++n)
        for (int64_t o = 0; o < ys.dims[1]; ++o)
            for (int64_t p = 0; p < ys.dims[2]; ++p)
                for (int64_t q = 0; q < ys.dims[3]; ++q)
                    for (int64_t c = 0; c < depth; ++c)
                        for (int64_t r = 0; r < ws.dims[2]; ++r)
                            for (int64_t s = 0; s < ws.dims[3]; ++s) {
                                const int64_t i = p * step[0] - pad[0] + r * apart[0],
                                              j = q * step[1] - pad[1] + s * apart[1];
                                if (i < 0 || j < 0 || i >= xs.dims[2] || j >= xs.dims[3]) continue;
                                const size_t at_x = xs.at(n, o / each * depth + c, i, j),
                                             at_w = ws.at(o, c, r, s), at_y = ys.at(n, o, p, q);
                                if (kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
                                    sum[at_y] += x[at_x] * w[at_w];
                                else if (
                                    kind ==
                                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
                                    sum[at_x] += y[at_y] * w[at_w];
                                else
                                    sum[at_w] += x[at_x] * y[at_y];
                            }
}

void Run::convolve(const CudnnObject &operation, int window, int beta, int x, int w, int y)
{
    const int to = ports_of(operation).out;
    const CudnnObject &written = *operation.ref(to);
    const auto read = [&](int name) {
        return name == to ? Numbers() : factors(*operation.ref(name));
    };
    Numbers sum(Shape(written).count());
    if (operation.get<float>(beta) == 1) sum = numbers(written);
    sum_products(*operation.ref(window), Shape(*operation.ref(x)), Shape(*operation.ref(w)),
                 Shape(*operation.ref(y)), read(x), read(w), read(y), operation.type, sum);
    keep(written, std::move(sum));
}

// Returns the place in another tensor that belongs to an element of `shape`. An axis of length 1 is broadcast. On a
// shorter axis, equally many neighbours share an element.
size_t met_by(const Shape &other, const Shape &shape, const int64_t (&at)[4])
{
    int64_t mine[4];
    for (size_t axis = 0; axis < 4; ++axis)
        mine[axis] = at[axis] / (shape.dims[axis] / other.dims[axis]);
    return other.at(mine[0], mine[1], mine[2], mine[3]);
}

// run(number, place) for each element.
template <class F>
void each_place(const Shape &shape, const F &run)
{
    size_t number = 0;
    for (int64_t a = 0; a < shape.dims[0]; ++a)
        for (int64_t b = 0; b < shape.dims[1]; ++b)
            for (int64_t c = 0; c < shape.dims[2]; ++c)
                for (int64_t d = 0; d < shape.dims[3]; ++d) {
                    const int64_t at[4] = {a, b, c, d};
                    run(number++, at);
                }
}

float apply(cudnnPointwiseMode_t mode, float x, float b, float t)
{
    switch (mode) {
        case CUDNN_POINTWISE_ADD:
            return x + b;
        case CUDNN_POINTWISE_SUB:
            return x - b;
        case CUDNN_POINTWISE_MUL:
            return x * b;
        case CUDNN_POINTWISE_DIV:
            return x / b;
        case CUDNN_POINTWISE_EXP:
            return std::exp(x);
        case CUDNN_POINTWISE_LOG:
            return std::log(x);
        case CUDNN_POINTWISE_CMP_GE:
            return x >= b;
        case CUDNN_POINTWISE_BINARY_SELECT:
            return t != 0 ? x : b;
        default:
            return x;
    }
}

void Run::point(const CudnnObject &operation)
{
    const CudnnObject &kind = *operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                      &x = *operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC),
                      *b = operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                      *t = operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const auto mode = kind.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const auto axis = kind.get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
    const Shape shape(x), b_shape(b ? *b : x), t_shape(t ? *t : x);
    const Numbers xs = numbers(x), bs = b ? numbers(*b) : xs, ts = t ? numbers(*t) : xs;
    Numbers all(shape.count());
    each_place(shape, [&](size_t i, const int64_t(&at)[4]) {
        all[i] = mode == CUDNN_POINTWISE_GEN_INDEX
                     ? static_cast<float>(at[axis])
                     : apply(mode, xs[i], bs[met_by(b_shape, shape, at)],
                             ts[met_by(t_shape, shape, at)]);
    });
    keep(*operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC), std::move(all));
}

// Tells whether a product is added to the tensor's memory, because a later step reads the tensor from there.
bool Run::is_accumulator(const CudnnObject &tensor) const
{
    if (tensor.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) return false;
    const auto name = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    for (const CudnnRef &step : work_.graph->values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).refs)
        for (const int port : ports_of(*step).in)
            if (const CudnnObject *read = step->ref(port))
                if (read->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID) == name) return true;
    return false;
}

void Run::multiply(const CudnnObject &operation)
{
    const CudnnObject &a = *operation.ref(CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                      &b = *operation.ref(CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                      &c = *operation.ref(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    const Shape left(a), right(b), to(c);
    const Numbers xs = numbers(a), ys = numbers(b);
    const auto head = [&](const Shape &of, int64_t h) { return h / (to.dims[1] / of.dims[1]); };
    const bool adds = is_accumulator(c);
    const int64_t length = left.dims[3], first = adds ? work_.turn % length : 0;
    Numbers all = adds ? numbers(c) : Numbers(to.count());
    each_place(to, [&](size_t i, const int64_t(&at)[4]) {
        for (int64_t n = 0; n < length; ++n) {
            const int64_t k = (first + n) % length;
            all[i] += xs[left.at(at[0], head(left, at[1]), at[2], k)] *
                      ys[right.at(at[0], head(right, at[1]), k, at[3])];
        }
    });
    keep(c, std::move(all));
}

void Run::reduce(const CudnnObject &operation)
{
    const CudnnObject &x = *operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_XDESC),
                      &y = *operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const bool is_max =
        operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
            ->get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_MAX;
    const Shape shape(x), to(y);
    const Numbers xs = numbers(x);
    Numbers all(to.count(), is_max ? -INFINITY : 0.0f);
    each_place(shape, [&](size_t i, const int64_t(&at)[4]) {
        float &one = all[met_by(to, shape, at)];
        one = is_max ? std::max(one, xs[i]) : one + xs[i];
    });
    keep(y, std::move(all));
}

// Keeps the elements in memory, under other dimensions and strides.
void Run::reshape(const CudnnObject &operation)
{
    const CudnnObject &x = *operation.ref(CUDNN_ATTR_OPERATION_RESHAPE_XDESC),
                      &y = *operation.ref(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    const Numbers xs = numbers(x);
    std::map<int64_t, float> memory;
    Shape(x).each([&](size_t i, int64_t at) { memory[at] = xs[i]; });
    Numbers all(xs.size());
    Shape(y).each([&](size_t i, int64_t at) { all[i] = memory.at(at); });
    keep(y, std::move(all));
}

void Run::one(const CudnnObject &operation)
{
    switch (operation.type) {
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
            return convolve(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
            return convolve(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
        case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
            return convolve(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            return multiply(operation);
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            return reduce(operation);
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
            return reshape(operation);
        default:
            return point(operation);
    }
}

}  // namespace

void run_cudnn_graph(const CudnnWork &work)
{
    Run(work).all();
}

int do_cudnn_work(void *context)
{
    const CudnnWork &work = *static_cast<const CudnnWork *>(context);
    if (work.workspace_bytes) memset(work.workspace, 0xab, work.workspace_bytes);
    run_cudnn_graph(work);
    runtime().spend(work.microseconds);
    return cudaSuccess;
}

void drop_cudnn_work(void *context)
{
    delete static_cast<CudnnWork *>(context);
}

}  // namespace yoke::fake
