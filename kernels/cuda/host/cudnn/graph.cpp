#include "kernels/cuda/host/cudnn/graph.h"

#include <algorithm>
#include <utility>

namespace yoke::cuda {

// ---- descriptors ----------------------------------------------------------------------------------------------------

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept
{
    std::swap(call_, other.call_);
    std::swap(it_, other.it_);
    return *this;
}

Descriptor::~Descriptor()
{
    if (it_) call_->cudnnBackendDestroyDescriptor(it_);
}

cudnnBackendDescriptor_t Descriptor::release()
{
    return std::exchange(it_, nullptr);
}

// Keeps the first failure, with cuDNN's text, because cuDNN drops the text at the next failure. Ignores later
// failures.
void CudnnSteps::check(cudnnStatus_t status, const char *what)
{
    if (status == CUDNN_STATUS_SUCCESS || failure_) return;
    failure_.status = status;
    failure_.call = what;
    call.cudnnGetLastErrorString(failure_.said, sizeof failure_.said);
}

Descriptor CudnnSteps::create(cudnnBackendDescriptorType_t type)
{
    Descriptor made(call);
    if (works())
        check(call.cudnnBackendCreateDescriptor(type, made.place()),
              "cudnnBackendCreateDescriptor");
    return made;
}

void CudnnSteps::set(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    if (works())
        check(call.cudnnBackendSetAttribute(it, name, type, count, values),
              "cudnnBackendSetAttribute");
}

int64_t CudnnSteps::get(cudnnBackendDescriptor_t it, cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, int64_t count, void *values)
{
    int64_t known = 0;
    if (works())
        check(call.cudnnBackendGetAttribute(it, name, type, count, &known, values),
              "cudnnBackendGetAttribute");
    return works() ? known : 0;
}

void CudnnSteps::finalize(cudnnBackendDescriptor_t it)
{
    if (works()) check(call.cudnnBackendFinalize(it), "cudnnBackendFinalize");
}

// ---- tensors --------------------------------------------------------------------------------------------------------

Graph::~Graph()
{
    while (count_ > 0) steps.call.cudnnBackendDestroyDescriptor(owned_[--count_]);
}

Graph::Node Graph::keep(Descriptor &&made)
{
    steps.finalize(made.get());
    if (count_ == kMost)
        steps.check(CUDNN_STATUS_BAD_PARAM, "a graph of more descriptors than expected");
    if (!steps.works()) return nullptr;
    return owned_[count_++] = made.release();
}

void Graph::keep_operation(Descriptor &&made)
{
    const Node kept = keep(std::move(made));
    if (operation_count_ == kMostOperations)
        steps.check(CUDNN_STATUS_BAD_PARAM, "a graph of more operations than expected");
    if (steps.works()) operations_[operation_count_++] = kept;
}

Graph::Node Graph::make_tensor(cudnnDataType_t type, const CudnnShape &shape, int64_t name,
                               int64_t alignment, bool is_virtual, bool is_number)
{
    Descriptor made = steps.create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, kCudnnAxes, shape.dims);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, kCudnnAxes, shape.strides);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, name);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
    steps.set(made.get(), CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, is_number);
    return keep(std::move(made));
}

Graph::Node Graph::tensor(cudnnDataType_t type, const CudnnShape &shape, int64_t name,
                          int64_t alignment)
{
    return make_tensor(type, shape, name, alignment, false, false);
}

Graph::Node Graph::between(cudnnDataType_t type, const CudnnShape &shape)
{
    return make_tensor(type, shape, next_name_++, 16, true, false);
}

Graph::Node Graph::number(int64_t name)
{
    constexpr CudnnShape kOne = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return make_tensor(CUDNN_DATA_FLOAT, kOne, name, 16, false, true);
}

// ---- operations -----------------------------------------------------------------------------------------------------

Graph::Node Graph::pointwise_kind(cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis)
{
    Descriptor made = steps.create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    steps.set(made.get(), CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    steps.set(made.get(), CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
    if (axis >= 0) steps.set(made.get(), CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
    return keep(std::move(made));
}

void Graph::add_pointwise(Node kind, Node x, Node b, Node y, Node t)
{
    Descriptor made = steps.create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    const auto set = [&](cudnnBackendAttributeName_t name, Node value) {
        if (value) steps.set(made.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
    };
    set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind);
    set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    keep_operation(std::move(made));
}

void Graph::pointwise(cudnnPointwiseMode_t mode, Node x, Node b, Node y, Node t)
{
    add_pointwise(pointwise_kind(mode, CUDNN_DATA_FLOAT, -1), x, b, y, t);
}

void Graph::index(int64_t axis, Node like, Node y)
{
    add_pointwise(pointwise_kind(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, axis), like, nullptr,
                  y, nullptr);
}

void Graph::compare(cudnnPointwiseMode_t mode, Node x, Node b, Node y)
{
    add_pointwise(pointwise_kind(mode, CUDNN_DATA_BOOLEAN, -1), x, b, y, nullptr);
}

void Graph::matmul(Node a, Node b, Node c)
{
    Descriptor kind = steps.create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    steps.set(kind.get(), CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    const Node kept = keep(std::move(kind));
    Descriptor made = steps.create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, a);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_MATMUL_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, b);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, c);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, kept);
    keep_operation(std::move(made));
}

void Graph::reduce(cudnnReduceTensorOp_t op, Node x, Node y)
{
    Descriptor kind = steps.create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    steps.set(kind.get(), CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
    steps.set(kind.get(), CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    const Node kept = keep(std::move(kind));
    Descriptor made = steps.create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_REDUCTION_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, kept);
    keep_operation(std::move(made));
}

void Graph::reshape(Node x, Node y)
{
    Descriptor made = steps.create(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, x);
    steps.set(made.get(), CUDNN_ATTR_OPERATION_RESHAPE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, y);
    keep_operation(std::move(made));
}

bool Graph::finish()
{
    Descriptor made = steps.create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (target_.handle)
        steps.set(made.get(), CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
    steps.set(made.get(), CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              operation_count_, operations_);
    graph_ = keep(std::move(made));
    return steps.works();
}

int64_t alignment_of(const void *address)
{
    const uint64_t bits = reinterpret_cast<uintptr_t>(address) | 16;
    return static_cast<int64_t>(bits & -bits);
}

cudnnDataType_t cudnn_type(yoke_dtype dtype)
{
    return dtype == YOKE_F16    ? CUDNN_DATA_HALF
           : dtype == YOKE_BF16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}

}  // namespace yoke::cuda
