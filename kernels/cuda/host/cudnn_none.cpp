// Where cuDNN's headers were missing when the module was built.
#include "kernels/cuda/host/cudnn.h"
#include "kernels/cuda/host/cudnn_attention.h"
#include "kernels/cuda/host/cudnn_conv.h"

namespace yoke::cuda {

const char *cudnn_why_unavailable()
{
    return "this CUDA module was built without cuDNN's headers; install them (cudnn_graph.h comes with cuDNN 9.8 and later) and build again";
}

int64_t cudnn_version()
{
    return 0;
}

yoke_status cudnn_prepare(Device &)
{
    return YOKE_OK;
}

void cudnn_close(const Device &) {}

// Once.
static void tell()
{
    static const bool told = [] {
        const char *setting = g_host->config("YOKE_CUDNN_ENABLED");
        const bool asked = setting && *setting == '1';
        if (asked) g_host->log(YOKE_LOG_WARN, cudnn_why_unavailable());
        return asked;
    }();
    static_cast<void>(told);
}

yoke_status cudnn_convolve(const yoke_launch *, const kernels::Conv &, CopyOperand, bool *done)
{
    tell();
    *done = false;
    return YOKE_OK;
}

yoke_status cudnn_attend(const yoke_launch *, CopyOperand, bool *done)
{
    tell();
    *done = false;
    return YOKE_OK;
}

}  // namespace yoke::cuda
