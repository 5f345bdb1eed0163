#include "core/ops/recompute/logged_call.h"

#include "core/base/config.h"
#include "core/ops/graph.h"
#include "core/ops/launch_copy.h"

#include <new>

namespace yoke {

static_assert(sizeof(LoggedCall) % 16 == 0 && sizeof(Source) % 8 == 0);

LoggedCall::LoggedCall(Device &on, uint32_t at, const OpDef &op, size_t bytes)
    : device(on),
      position(at),
      threads(num_threads()),
      named(op),
      graph(Graph::number_of_thread()),
      bytes_(bytes)
{
}

Ref<LoggedCall> LoggedCall::make(const yoke_launch &launch, Device &device, uint32_t position,
                                 const OpDef &named, std::span<Storage *const> storages)
{
    const size_t copy = launch_copy_bytes(launch);
    const size_t bytes = sizeof(LoggedCall) + copy + sizeof(Source) * storages.size();
    char *block = static_cast<char *>(pool_alloc(bytes));
    auto *call = new (block) LoggedCall(device, position, named, bytes);
    call->launch_ = copy_launch(launch, block + sizeof(LoggedCall));
    call->sources_ = reinterpret_cast<Source *>(block + sizeof(LoggedCall) + copy);
    auto *operands = const_cast<yoke_operand *>(call->launch_->operands);
    for (size_t i = 0; i < storages.size(); ++i) {
        new (&call->sources_[i]) Source{};
        yoke_operand &o = operands[i];
        if (!storages[i] || !o.numel) continue;
        const auto *first = static_cast<const char *>(storages[i]->data);
        o.data = reinterpret_cast<void *>(static_cast<char *>(o.data) - first);
        o.begin = reinterpret_cast<void *>(static_cast<const char *>(o.begin) - first);
    }
    return Ref<LoggedCall>::adopt(call);
}

LoggedCall::~LoggedCall()
{
    for (Source &source : sources()) source.~Source();
}

void LoggedCall::destroy() noexcept
{
    const size_t bytes = bytes_;
    this->~LoggedCall();
    pool_free(this, bytes);
}

}  // namespace yoke
