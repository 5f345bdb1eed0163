// Convolution, or its gradient by data or by weight, as a graph of cuDNN.
//
// Contract
//  * x and out lie [N, H, W, C]. The weight lies [out, height, width, in / groups], unlike Yoke's own order, because
//    cuDNN's kernels for NHWC images read this order.
//  * f16, bf16 and f32, computed in f32.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

enum ConvName : int64_t { kConvX = 1, kConvWeight, kConvOut, kConvBias };

// Properties that distinguish graphs and plans, besides sizes.
struct ConvTerms {
    int64_t alignment[4];  // x, weight, out and bias, in bytes
    // Forward, a bias is added. The gradient by data is added to what x holds, into which a caller has put the bias:
    // of an addition behind that product cuDNN compiles each kernel, for half a second and more.
    bool bias;
};

// Whether cuDNN takes the finished graph; its steps tell why not.
bool build_conv(Graph &graph, const kernels::Conv &conv, const ConvTerms &terms);

}  // namespace yoke::cuda
