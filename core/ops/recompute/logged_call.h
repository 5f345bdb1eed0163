// logged_call.h: what the log of a checkpoint scope keeps of one launch: its record, and where each operand comes from.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"
#include "core/tensor/offloaded.h"

#include <span>

namespace yoke {

// A storage that a logged call has made, with every change that logged calls have given it since. It outlives the
// storage. Only the thread that logs writes to it, while the log is open.
class Value final : public Origin {
public:
    Value(uint64_t log_number, uint32_t maker_call, uint64_t size)
        : log(log_number), maker(maker_call), bytes(size), last_write(maker_call)
    {
    }
    static void *operator new(size_t size) { return pool_alloc(size); }
    static void operator delete(void *block, size_t size) noexcept { pool_free(block, size); }

    const uint64_t log;          // the number of that log
    const uint32_t maker;        // the call that made it
    const uint64_t bytes;        // of the storage
    uint32_t known_version = 0;  // of the storage, behind the last logged call that wrote it
    uint32_t last_write;         // that call
    bool lost = false;  // something else wrote it: from then on it is as if it came from outside
    uint32_t profiled = 0;  // its number in the profile of
    uint64_t profiler = 0;  // that ForwardProfiler; 0: of none
};

// Where an operand comes from: a value of the log, or memory from outside of it, which is held. Neither: a number, an
// absent or an empty tensor.
struct Source {
    Ref<Value> value;
    Ref<Storage> outside;
    Ref<Offloaded> offloaded;  // in place of `outside`, of
    Ref<Origin> origin;        // that
    uint32_t version = 0;      // of `outside`, when it was read
};

class alignas(16) LoggedCall final : public RefCounted {
public:
    // Of a launch; `name` is the op as the script called it. The sources are empty; data and begin of the operands say
    // how far they lie behind the beginning of their storages.
    static Ref<LoggedCall> make(const yoke_launch &launch, Device &device, uint32_t position,
                                const OpDef &named, std::span<Storage *const> storages);

    const yoke_launch &launch() const { return *launch_; }
    std::span<Source> sources() const
    {
        return {sources_, static_cast<size_t>(launch_->operand_count)};
    }
    bool writes(size_t operand) const
    {
        return launch_->operands[operand].flags & YOKE_OPERAND_WRITE;
    }
    // Whether an operand's storage is read, of which a result that it makes is not.
    bool reads(size_t operand) const
    {
        return launch_->operands[operand].flags & YOKE_OPERAND_READ;
    }

    Device &device;
    const uint32_t position;  // in its log
    const int32_t threads;    // that the host's kernels may use
    const OpDef &named;       // the op that the script called, of which this may be a part
    const uint64_t graph;     // the number of the one that was being captured; 0: of none

private:
    LoggedCall(Device &on, uint32_t at, const OpDef &op, size_t bytes);
    ~LoggedCall() override;
    void destroy() noexcept override;

    const size_t bytes_;  // of the whole block
    yoke_launch *launch_ = nullptr;
    Source *sources_ = nullptr;
};

}  // namespace yoke
