// Attributes of the fake libcudnn_graph's descriptors, and refusals.
#include <cstdarg>
#include <cstdio>

#include "tests/fakes/cuda/cudnn_fake.h"

namespace yoke::fake {
namespace {

enum Need { kOptional, kNeeded };

struct Rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
    Need need;
};

#define TENSOR CUDNN_BACKEND_TENSOR_DESCRIPTOR
#define CONVOLUTION CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR
#define FORWARD CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
#define DATA CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
#define FILTER CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
#define POINTWISE CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
#define PRODUCT CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
#define REDUCTION CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR
#define RESHAPE CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR
#define REF CUDNN_TYPE_BACKEND_DESCRIPTOR

constexpr Rule kRules[] = {
    {TENSOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, kNeeded},
    {TENSOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4, kNeeded},
    {TENSOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4, kNeeded},
    {TENSOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1, kNeeded},
    {TENSOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1, kNeeded},
    {TENSOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1, kOptional},
    {TENSOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1, kOptional},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1, kNeeded},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1, kNeeded},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, kNeeded},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 2, kNeeded},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, 2, kNeeded},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 2, kNeeded},
    {CONVOLUTION, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 2, kNeeded},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, kNeeded},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, 1, kNeeded},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, REF, 1, 1, kNeeded},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, REF, 1, 1, kNeeded},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, REF, 1, 1, kNeeded},
    {FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, REF, 1, 1, kNeeded},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, kNeeded},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, 1, 1, kNeeded},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, REF, 1, 1, kNeeded},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, REF, 1, 1, kNeeded},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, REF, 1, 1, kNeeded},
    {DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, REF, 1, 1, kNeeded},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, kNeeded},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, 1, 1, kNeeded},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, REF, 1, 1, kNeeded},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, REF, 1, 1, kNeeded},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, REF, 1, 1, kNeeded},
    {FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, REF, 1, 1, kNeeded},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, 1,
     kNeeded},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, 1,
     kNeeded},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, 1,
     kOptional},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, REF, 1, 1, kNeeded},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, REF, 1, 1, kNeeded},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, REF, 1, 1, kOptional},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, REF, 1, 1, kOptional},
    {POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, REF, 1, 1, kNeeded},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1,
     kNeeded},
    {PRODUCT, CUDNN_ATTR_OPERATION_MATMUL_ADESC, REF, 1, 1, kNeeded},
    {PRODUCT, CUDNN_ATTR_OPERATION_MATMUL_BDESC, REF, 1, 1, kNeeded},
    {PRODUCT, CUDNN_ATTR_OPERATION_MATMUL_CDESC, REF, 1, 1, kNeeded},
    {PRODUCT, CUDNN_ATTR_OPERATION_MATMUL_DESC, REF, 1, 1, kNeeded},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, 1, kNeeded},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1,
     kNeeded},
    {REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, REF, 1, 1, kNeeded},
    {REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, REF, 1, 1, kNeeded},
    {REDUCTION, CUDNN_ATTR_OPERATION_REDUCTION_DESC, REF, 1, 1, kNeeded},
    {RESHAPE, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, REF, 1, 1, kNeeded},
    {RESHAPE, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, REF, 1, 1, kNeeded},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1, kNeeded},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, REF, 1, 64, kNeeded},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, REF, 1, 1,
     kNeeded},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1,
     kNeeded},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, REF, 1, 1, kNeeded},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, 1,
     kNeeded},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
     1, 1, kNeeded},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
     1, kNeeded},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, REF, 1, 1, kNeeded},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, REF, 1, 64, kOptional},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1, kNeeded},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, REF, 1, 1,
     kNeeded},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
     64, kNeeded},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, 1, 64, kNeeded},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     1, 1, kNeeded},
};

cudnnStatus_t check_tensor(const CudnnObject &tensor)
{
    const auto dims = tensor.list(CUDNN_ATTR_TENSOR_DIMENSIONS),
               strides = tensor.list(CUDNN_ATTR_TENSOR_STRIDES);
    for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] < 1 || strides[i] < 0)
            return refuse_cudnn("a tensor of length %lld and stride %lld", (long long)dims[i],
                                (long long)strides[i]);
    const auto alignment = tensor.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    const auto size =
        static_cast<int64_t>(size_of(tensor.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)));
    if (alignment < size || alignment & (alignment - 1))
        return refuse_cudnn("a tensor aligned to %lld bytes", (long long)alignment);
    if (tensor.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) &&
        tensor.get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        return refuse_cudnn("a number that is virtual");
    return CUDNN_STATUS_SUCCESS;
}

// Tells whether memory is [N, H, W, C], the layout for Yoke's kernels.
bool is_channels_last(const CudnnObject &tensor)
{
    const auto d = tensor.list(CUDNN_ATTR_TENSOR_DIMENSIONS),
               s = tensor.list(CUDNN_ATTR_TENSOR_STRIDES);
    return s == std::vector<int64_t>{d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
}

cudnnStatus_t check_convolution(const CudnnObject &operation, int window_name, int x_name,
                                int w_name, int y_name)
{
    const CudnnObject &window = *operation.ref(window_name);
    const CudnnObject *const tensors[] = {operation.ref(x_name), operation.ref(w_name),
                                          operation.ref(y_name)};
    for (const CudnnObject *tensor : tensors)
        if (!is_channels_last(*tensor))
            return refuse_cudnn("a tensor of a convolution that is not channels last");
    const auto x = tensors[0]->list(CUDNN_ATTR_TENSOR_DIMENSIONS),
               w = tensors[1]->list(CUDNN_ATTR_TENSOR_DIMENSIONS),
               y = tensors[2]->list(CUDNN_ATTR_TENSOR_DIMENSIONS);
    if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] || w[0] % (x[1] / w[1]))
        return refuse_cudnn("a convolution whose channels or images do not fit");
    const auto pre = window.list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
               post = window.list(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
               apart = window.list(CUDNN_ATTR_CONVOLUTION_DILATIONS),
               step = window.list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    for (size_t i = 0; i < 2; ++i) {
        const int64_t reach = apart[i] * (w[2 + i] - 1) + 1, length = x[2 + i] + pre[i] + post[i];
        if (length < reach || y[2 + i] != (length - reach) / step[i] + 1)
            return refuse_cudnn("a convolution of %lld to %lld", (long long)x[2 + i],
                                (long long)y[2 + i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace

cudnnStatus_t check_attribute(const CudnnObject &object, cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t count)
{
    for (const Rule &rule : kRules)
        if (rule.of == object.type && rule.name == name)
            return rule.type != type || count < rule.least || count > rule.most
                       ? refuse_cudnn("attribute %d of type %d and %lld values", name, type,
                                      (long long)count)
                       : CUDNN_STATUS_SUCCESS;
    return refuse_cudnn("a descriptor of kind %d has no attribute %d", object.type, name);
}

// Refuses a result with elements in the same place.
static cudnnStatus_t check_result(const CudnnObject &operation)
{
    const CudnnObject &result = *operation.ref(ports_of(operation).out);
    const auto dims = result.list(CUDNN_ATTR_TENSOR_DIMENSIONS),
               strides = result.list(CUDNN_ATTR_TENSOR_STRIDES);
    for (size_t i = 0; i < dims.size(); ++i)
        if (dims[i] > 1 && strides[i] == 0) return refuse_cudnn("a result with a stride of 0");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_object(const CudnnObject &object)
{
    for (const Rule &rule : kRules)
        if (rule.of == object.type && rule.need == kNeeded && !object.has(rule.name))
            return refuse_cudnn("a descriptor of kind %d lacks attribute %d", object.type,
                                rule.name);
    switch (object.type) {
        case TENSOR:
            return check_tensor(object);
        case FORWARD:
            return check_convolution(object, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        case DATA:
            return check_convolution(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
        case FILTER:
            return check_convolution(object, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        case POINTWISE:
        case PRODUCT:
        case REDUCTION:
        case RESHAPE:
            return check_result(object);
        default:
            return CUDNN_STATUS_SUCCESS;
    }
}

CudnnPorts ports_of(const CudnnObject &operation)
{
    switch (operation.type) {
        case FORWARD:
            return {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
        case DATA:
            return {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX};
        case FILTER:
            return {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW};
        case PRODUCT:
            return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
                    CUDNN_ATTR_OPERATION_MATMUL_CDESC};
        case REDUCTION:
            return {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
        case RESHAPE:
            return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
        default:
            return {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                     CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
                    CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
    }
}

// ---- addresses for a plan -------------------------------------------------------------------------------------------

std::map<int64_t, const CudnnObject *> tensors_of(const CudnnObject &graph)
{
    std::map<int64_t, const CudnnObject *> tensors;
    for (const CudnnRef &operation : graph.values.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).refs) {
        CudnnPorts ports = ports_of(*operation);
        ports.in.push_back(ports.out);
        for (const int port : ports.in)
            if (const CudnnObject *tensor = operation->ref(port))
                if (!tensor->get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
                    tensors[tensor->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)] = tensor;
    }
    return tensors;
}

cudnnStatus_t read_cudnn_pack(const CudnnObject &pack, const CudnnObject &graph, CudnnWork &work)
{
    const auto names = pack.list(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
               places = pack.list(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    if (names.size() != places.size())
        return refuse_cudnn("a pack of %zu names and %zu places", names.size(), places.size());
    const auto tensors = tensors_of(graph);
    for (size_t i = 0; i < names.size(); ++i) {
        const auto tensor = tensors.find(names[i]);
        if (tensor == tensors.end())
            return refuse_cudnn("the graph has no tensor %lld", (long long)names[i]);
        const auto alignment = tensor->second->get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
        if (!places[i] || places[i] % alignment)
            return refuse_cudnn("tensor %lld at %llx, where an alignment of %lld was promised",
                                (long long)names[i], (long long)places[i], (long long)alignment);
        if (tensor->second->get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
            work.numbers[names[i]] = *reinterpret_cast<const float *>(places[i]);
        else
            work.addresses[names[i]] = reinterpret_cast<void *>(places[i]);
    }
    if (work.addresses.size() + work.numbers.size() != tensors.size())
        return refuse_cudnn("a pack that lacks a tensor");
    work.workspace = pack.get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    if (work.workspace_bytes &&
        (!work.workspace || reinterpret_cast<uintptr_t>(work.workspace) % 256))
        return refuse_cudnn("a workspace at %p", work.workspace);
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace yoke::fake
