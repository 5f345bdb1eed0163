// logged_call.h: a launch in the log of a checkpoint scope: its record, and the source of each operand.
#pragma once

#include "core/backend/backend.h"
#include "core/ops/op_def.h"
#include "core/tensor/offloaded.h"

#include <span>

namespace yoke {

// Storage made by a logged call, including all later changes by logged calls. The value outlives the storage. While
// the log is open, only the logging thread writes the value.
class Value final : public Origin {
public:
    Value(uint64_t log_number, uint32_t maker_call, uint64_t size)
        : log(log_number), maker(maker_call), bytes(size), last_write(maker_call)
    {
    }
    static void *operator new(size_t size) { return pool_alloc(size); }
    static void operator delete(void *block, size_t size) noexcept { pool_free(block, size); }

    const uint64_t log;          // the number of that log
    const uint32_t maker;        // call that made the value
    const uint64_t bytes;        // size of the storage
    uint32_t known_version = 0;  // storage's version after the last logged write
    uint32_t last_write;         // call of the last logged write
    bool lost = false;      // written outside the log: from then on, treated as memory from outside
    uint32_t profiled = 0;  // its number in the profile of
    uint64_t profiler = 0;  // number of this ForwardProfiler; 0: none
};

// Source of an operand: a value of the log, or memory from outside of it, which is held. Neither: a number, an absent
// or an empty tensor.
struct Source {
    Ref<Value> value;
    Ref<Storage> outside;
    Ref<Offloaded> offloaded;  // in place of `outside`, of
    Ref<Origin> origin;        // origin of the offloaded storage
    uint32_t version = 0;      // version of `outside` at the read
};

class alignas(16) LoggedCall final : public RefCounted {
public:
    // Makes the log's copy of a launch; `named` is the op as the script called it. The sources are empty; data and
    // begin of the operands are offsets from the beginning of their storages.
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
    // Returns whether an operand's storage is read; false for the call's own results.
    bool reads(size_t operand) const
    {
        return launch_->operands[operand].flags & YOKE_OPERAND_READ;
    }

    Device &device;
    const uint32_t position;  // index in the log
    const int32_t threads;    // threads for CPU kernels
    const OpDef &named;       // op called by the script; this call may be a part
    const uint64_t graph;     // number of the graph under capture; 0: none

private:
    LoggedCall(Device &on, uint32_t at, const OpDef &op, size_t bytes);
    ~LoggedCall() override;
    void destroy() noexcept override;

    const size_t bytes_;  // size of the whole block
    yoke_launch *launch_ = nullptr;
    Source *sources_ = nullptr;
};

}  // namespace yoke
