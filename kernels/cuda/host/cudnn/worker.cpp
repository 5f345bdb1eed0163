#include "kernels/cuda/host/cudnn/worker.h"

#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/cudnn/status.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

// ---- a worker -------------------------------------------------------------------------------------------------------

CudnnFailure CudnnWorker::start()
{
    CudnnSteps steps(call_);
    steps.check(call_.cudnnCreate(&handle_), "cudnnCreate");
    return steps.failure();
}

CudnnFailure CudnnWorker::finish()
{
    CudnnSteps steps(call_);
    steps.check(call_.cudnnDestroy(handle_), "device_close: cudnnDestroy");
    return steps.failure();
}

CudnnFailure CudnnWorker::set_stream(cudaStream_t stream)
{
    if (stream == stream_) return {};
    CudnnSteps steps(call_);
    steps.check(call_.cudnnSetStream(handle_, stream), "cudnnSetStream");
    if (steps.works()) stream_ = stream;
    return steps.failure();
}

CudnnEntry *CudnnWorker::set_of(const CudnnKey &key)
{
    uint64_t hash = 0;
    for (const int64_t word : key.words) {
        hash = (hash ^ static_cast<uint64_t>(word)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return entries_[hash % kSets];
}

CudnnEntry *CudnnWorker::find(const CudnnKey &key)
{
    CudnnEntry *set = set_of(key);
    for (int way = 0; way < kWays; ++way)
        if (set[way].used && memcmp(&set[way].key, &key, sizeof key) == 0) {
            set[way].used = ++clock_;
            return &set[way];
        }
    return nullptr;
}

CudnnEntry &CudnnWorker::room_for(const CudnnKey &key)
{
    CudnnEntry *set = set_of(key), *oldest = set;
    for (int way = 0; way < kWays; ++way)
        if (set[way].used < oldest->used) oldest = &set[way];
    oldest->key = key;
    oldest->used = ++clock_;
    oldest->exists = oldest->untuned = oldest->is_tried = false;
    oldest->refused = 0;
    oldest->plan = {};
    return *oldest;
}

CudnnFailure CudnnWorker::run(const CudnnPlan &plan, const Operand *operands, int count,
                              void *workspace)
{
    constexpr int kMost = 16;
    int64_t names[kMost];
    const void *addresses[kMost];
    for (int i = 0; i < count; ++i) {
        names[i] = operands[i].name;
        addresses[i] = operands[i].address;
    }
    CudnnSteps steps(call_);
    const Descriptor pack = steps.create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    steps.set(pack.get(), CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
    steps.set(pack.get(), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
              addresses);
    steps.set(pack.get(), CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    steps.finalize(pack.get());
    if (steps.works())
        steps.check(call_.cudnnBackendExecute(handle_, plan.plan.get(), pack.get()),
                    "cudnnBackendExecute");
    return steps.failure();
}

// ---- lending --------------------------------------------------------------------------------------------------------

static std::mutex g_lending;
static CudnnWorker *g_free[kMaxDevices];

CudnnWorker *CudnnLoan::make(const yoke_launch *launch)
{
    const CudnnCalls *call = cudnn_calls();
    if (!call) {
        cudnn_warn(CudnnReason::kMissing, cudnn_why_unavailable());
        return nullptr;
    }
    CudnnWorker *made = new (std::nothrow) CudnnWorker(*call);
    const Relaxed relaxed;  // for it allocates
    if (const CudnnFailure failure = made ? made->start() : CudnnFailure{}; !made || failure) {
        if (failure) status_ = cudnn_pass_over(launch, failure);
        delete made;
        return nullptr;
    }
    return made;
}

CudnnLoan::CudnnLoan(const yoke_launch *launch)
    : device_(static_cast<const Device *>(launch->device)->index)
{
    {
        const std::lock_guard<std::mutex> lock(g_lending);
        worker_ = g_free[device_];
        if (worker_) g_free[device_] = std::exchange(worker_->next, nullptr);
    }
    if (!worker_) worker_ = make(launch);
    if (!worker_) return;
    if (const CudnnFailure failure =
            worker_->set_stream(static_cast<cudaStream_t>(launch->stream))) {
        status_ = cudnn_pass_over(launch, failure);
        give_back();
    }
}

CudnnLoan::~CudnnLoan()
{
    if (worker_) give_back();
}

void CudnnLoan::give_back()
{
    const std::lock_guard<std::mutex> lock(g_lending);
    worker_->next = std::exchange(g_free[device_], worker_);
    worker_ = nullptr;
}

void cudnn_close(const Device &device)
{
    CudnnWorker *free;
    {
        const std::lock_guard<std::mutex> lock(g_lending);
        free = std::exchange(g_free[device.index], nullptr);
    }
    while (free) {
        CudnnWorker *const worker = std::exchange(free, free->next);
        const CudnnFailure failure = worker->finish();
        if (failure && !is_lost(device)) cudnn_log(device, failure);
        delete worker;
    }
}

}  // namespace yoke::cuda
