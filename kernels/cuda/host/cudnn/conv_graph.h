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
    // True if there is a bias. Forward, the graph adds it. The gradient by data is added to x, into which the caller
    // has copied the bias. For an addition behind this gradient, cuDNN would compile each kernel for half a second
    // and more.
    bool bias;
};

// Builds the graph of a convolution and finalizes it. Returns false if a call of cuDNN fails; the graph's steps keep
// the failure.
bool build_conv(Graph &graph, const kernels::Conv &conv, const ConvTerms &terms);

}  // namespace yoke::cuda
