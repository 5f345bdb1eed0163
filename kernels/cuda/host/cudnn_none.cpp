// Where cuDNN's headers were missing when the module was built.
#include "kernels/cuda/host/cudnn.h"

namespace yoke::cuda {

const char *cudnn_why_unavailable()
{
    return "this CUDA module was built without cuDNN's headers; install them (cudnn_graph.h comes with cuDNN 9.8 and later) and build again";
}

int64_t cudnn_version()
{
    return 0;
}

}  // namespace yoke::cuda
