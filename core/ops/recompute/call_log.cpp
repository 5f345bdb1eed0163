#include "core/ops/recompute/call_log.h"

#include "core/autograd/node.h"
#include "core/ops/ops.h"

#include <atomic>

namespace yoke {

static std::atomic<uint64_t> logs_made{0};

CallLog::CallLog() : number(logs_made.fetch_add(1, std::memory_order_relaxed) + 1) {}

Value *CallLog::value_of(Storage &storage) const
{
    auto *value = static_cast<Value *>(storage.origin());
    if (!value || value->log != number) {
        if (imports_.empty()) return nullptr;
        const auto place = imports_.find(&storage);
        if (place == imports_.end()) return nullptr;
        value = place->second.value.get();
    }
    const bool is_known = !value->lost && !value->exposed.load(std::memory_order_relaxed) &&
                          value->known_version == storage.version.load(std::memory_order_relaxed);
    return is_known ? value : nullptr;
}

Ref<LoggedCall> CallLog::make_call(const yoke_launch &launch, Device &device, const OpDef &named,
                                   std::span<Storage *const> storages, size_t fresh) const
{
    Ref<LoggedCall> call = LoggedCall::make(launch, device, size(), named, storages);
    const auto sources = call->sources();
    for (size_t i = 0; i < storages.size(); ++i) {
        Storage *storage = storages[i];
        if (!storage || !storage->bytes || !launch.operands[i].numel) continue;
        if (i >= fresh) {
            sources[i].value = Ref<Value>::adopt(new Value(number, call->position, storage->bytes));
        } else if (Value *value = value_of(*storage)) {
            sources[i].value = Ref<Value>::share(value);
        } else {
            sources[i].outside = Ref<Storage>::share(storage);
            sources[i].version = storage->version.load(std::memory_order_relaxed);
        }
    }
    return call;
}

void CallLog::reserve_two()
{
    if (calls_.capacity() - calls_.size() < 2) calls_.reserve(2 * calls_.size() + 16);
}

void CallLog::import(const yoke_launch &launch, Device &device, const OpDef &named,
                     std::span<Storage *const> storages)
{
    Ref<LoggedCall> call = make_call(launch, device, named, storages, storages.size() - 1);
    Storage &made = *storages.back();
    const Ref<Value> value = call->sources().back().value;
    value->known_version = made.version.load(std::memory_order_relaxed);
    imports_[&made] = {value, Ref<Storage>::share(&made)};
    calls_.push_back(std::move(call));
}

void CallLog::clear() noexcept
{
    calls_.clear();
    imports_.clear();
}

Ref<Storage> copy_of(Storage &storage)
{
    const NoLog quiet;
    const NoGrad no_grad;
    const NoAutocast as_given;
    const auto bytes = static_cast<int64_t>(storage.bytes);
    const Tensor all = make_layout(*storage.device, YOKE_U8, {&bytes, 1}, nullptr, "checkpoint");
    all->storage = Ref<Storage>::share(&storage);
    all->data = static_cast<char *>(storage.data);
    return ops::clone(*all)->storage;
}

void give_copy_to_readers(std::span<const Ref<LoggedCall>> calls, Storage &storage,
                          Ref<Storage> &copy)
{
    const uint32_t version = storage.version.load(std::memory_order_relaxed);
    for (const Ref<LoggedCall> &call : calls)
        for (Source &source : call->sources()) {
            if (source.outside.get() != &storage || source.version != version) continue;
            if (!copy.present()) copy = copy_of(storage);
            source.outside = copy;
            source.version = copy->version.load(std::memory_order_relaxed);
        }
}

}  // namespace yoke
