// A convolution, its gradient by data or by weight as a graph of cuDNN's.
//
// Contract
//  * x and out lie [N, H, W, C]; the weight, unlike Yoke's own, [out, height, width, in / groups], which is what
//    cuDNN's kernels for that order of images read.
//  * f16, bf16 and f32, computed in f32.
#pragma once

#include "kernels/common/conv.h"
#include "kernels/cuda/host/cudnn/graph.h"

namespace yoke::cuda {

enum ConvName : int64_t { kConvX = 1, kConvWeight, kConvOut, kConvBias };

// What graphs and plans of it are told apart by, beside sizes.
struct ConvTerms {
    int64_t alignment[4];  // of x, weight, out and bias, in bytes
    // Forward, a bias is added. The gradient by data is added to what x holds, into which a caller has put the bias:
    // of an addition behind that product cuDNN compiles each kernel, for half a second and more.
    bool bias;
};

// Whether cuDNN takes the finished graph; its steps tell why not.
bool build_conv(Graph &graph, const kernels::Conv &conv, const ConvTerms &terms);

}  // namespace yoke::cuda
