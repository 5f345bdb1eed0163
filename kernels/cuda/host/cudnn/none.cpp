// Functions of cudnn.h in a module built without cuDNN's headers.
#include <atomic>

#include "kernels/cuda/host/cudnn/attention.h"
#include "kernels/cuda/host/cudnn/conv.h"
#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

const char *cudnn_why_unavailable()
{
    return "this CUDA module was built without cuDNN's headers; install them (cudnn_graph.h comes with cuDNN 9.8 and later) and build again";
}

int64_t cudnn_version()
{
    return 0;
}

yoke_status cudnn_prepare(Device &, uint32_t)
{
    return YOKE_OK;
}

void cudnn_close(const Device &) {}

// Sets *done to false. If the launch would have gone through cuDNN, logs a warning, once in a process.
static yoke_status pass_over(const yoke_launch *launch, bool is_cudnns, bool *done)
{
    static std::atomic<bool> told{false};
    *done = false;
    if (launch->flags & YOKE_LAUNCH_CUDNN_OFF || !is_cudnns) return YOKE_OK;
    if (!told.exchange(true)) g_host->log(YOKE_LOG_WARN, cudnn_why_unavailable());
    return YOKE_OK;
}

yoke_status cudnn_convolve(const yoke_launch *launch, const kernels::Conv &conv, CopyOperand,
                           bool *done)
{
    return pass_over(launch, conv.dtype != YOKE_F64, done);
}

yoke_status cudnn_attend(const yoke_launch *launch, const AttentionKernels &, bool *done)
{
    const yoke_dtype dtype = launch->operands[0].dtype;
    return pass_over(launch, dtype == YOKE_F16 || dtype == YOKE_BF16, done);
}

}  // namespace yoke::cuda
