#include "kernels/cuda/host/cudnn/conv_graph.h"

#include <utility>

namespace yoke::cuda {

namespace {

using kernels::Conv;
using kernels::ConvKind;

CudnnShape channels_last(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return {{n, c, h, w}, {h * w * c, 1, w * c, c}};
}

// Names of cuDNN's attributes. They differ by kind of convolution, and have the same meaning.
struct Attributes {
    cudnnBackendDescriptorType_t operation;
    cudnnBackendAttributeName_t alpha, beta, conv, x, weight, out;
};

Attributes attributes_of(ConvKind kind)
{
    switch (kind) {
        case ConvKind::kForward:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
        case ConvKind::kData:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
        default:
            return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    }
}

Graph::Node window_of(Graph &graph, const Conv &conv)
{
    CudnnSteps &steps = graph.steps;
    Descriptor made = steps.create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    const auto set = [&](cudnnBackendAttributeName_t name, const int64_t(&values)[2]) {
        steps.set(made.get(), name, CUDNN_TYPE_INT64, 2, values);
    };
    steps.set(made.get(), CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2});
    steps.set(made.get(), CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    steps.set(made.get(), CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
              CUDNN_CROSS_CORRELATION);
    set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, conv.padding);
    set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, conv.padding);
    set(CUDNN_ATTR_CONVOLUTION_DILATIONS, conv.dilation);
    set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, conv.stride);
    return graph.keep(std::move(made));
}

void add_convolution(Graph &graph, const Conv &conv, Graph::Node x, Graph::Node weight,
                     Graph::Node out, float beta)
{
    const Attributes names = attributes_of(conv.kind);
    const Graph::Node window = window_of(graph, conv);
    CudnnSteps &steps = graph.steps;
    Descriptor made = steps.create(names.operation);
    const auto set = [&](cudnnBackendAttributeName_t name, Graph::Node value) {
        steps.set(made.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value);
    };
    steps.set(made.get(), names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    steps.set(made.get(), names.beta, CUDNN_TYPE_FLOAT, beta);
    set(names.conv, window);
    set(names.x, x);
    set(names.weight, weight);
    set(names.out, out);
    graph.keep_operation(std::move(made));
}

}  // namespace

bool build_conv(Graph &graph, const Conv &conv, const ConvTerms &terms)
{
    const cudnnDataType_t type = cudnn_type(conv.dtype);
    const CudnnShape out_shape = channels_last(conv.n, conv.o, conv.oh, conv.ow);
    const Graph::Node x = graph.tensor(type, channels_last(conv.n, conv.c, conv.h, conv.w), kConvX,
                                       terms.alignment[0]),
                      weight = graph.tensor(
                          type, channels_last(conv.o, conv.c / conv.groups, conv.kh, conv.kw),
                          kConvWeight, terms.alignment[1]),
                      out = graph.tensor(type, out_shape, kConvOut, terms.alignment[2]);
    if (!terms.bias || conv.kind != ConvKind::kForward) {
        add_convolution(graph, conv, x, weight, out, terms.bias ? 1.0f : 0.0f);
        return graph.finish();
    }
    const Graph::Node bias = graph.tensor(type, channels_last(1, conv.o, 1, 1), kConvBias,
                                          terms.alignment[3]),
                      sums = graph.between(CUDNN_DATA_FLOAT, out_shape);
    add_convolution(graph, conv, x, weight, sums, 0.0f);
    graph.pointwise(CUDNN_POINTWISE_ADD, sums, bias, out);
    return graph.finish();
}

}  // namespace yoke::cuda
