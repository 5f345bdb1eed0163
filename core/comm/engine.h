// engine.h: one communicator of an engine of collectives, behind the contract of core/backend/comm.h.
#pragma once

#include "core/backend/comm.h"
#include "core/comm/cause_of.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// Raised where an engine failed: what it told of the fault, for cause_of.
struct EngineFailure {
    yoke_comm_fault fault;
    yoke_status status;
    std::string text;
};

// Returns the record of a fault in which nothing is told yet.
yoke_comm_fault no_fault() noexcept;

struct EngineInit {
    int32_t rank = 0, size = 1;
    std::string id;  // YOKE_COMM_ID_BYTES
    std::string address;
    double timeout_s = -1;  // of the making
    double patience_s = 0;  // of calls that bring no time of their own
    void *device = nullptr;
    // Those of all ranks, in their order.
    std::function<std::vector<std::string>(const std::string &mine)> all_gather;
    std::function<bool()> is_over;  // whether it is of no use any more to wait
};

class Engine {
public:
    // The engine of that name, "cpu" or a module's. Raises YOKE_E_VALUE, with those that there are, and
    // YOKE_E_UNAVAILABLE with the reason where a module is missing.
    static const yoke_backend_comm &find(const std::string &name, const char *call);
    // What rank 0 makes for all. Raises EngineFailure, as all that follows.
    static std::string make_id(const yoke_backend_comm &table, double timeout_s);

    Engine(const yoke_backend_comm &table, const EngineInit &init);
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    const char *name() const noexcept { return table_.name; }
    // Calls of its scope are issued together, at the end of it; with a null engine each by itself.
    class Together {
    public:
        explicit Together(Engine *engine);
        ~Together();
        Together(const Together &) = delete;
        Together &operator=(const Together &) = delete;
        void end();

    private:
        friend class Engine;
        Engine *engine_;
        yoke_comm_fault fault_;
    };
    void call(yoke_collective record, Together &in);
    void abort() noexcept;
    // After that; where the engine can.
    void hang_up() noexcept;
    // Of no further call: peers see that this rank has gone, though memory that was lent keeps the engine.
    void leave() noexcept;
    void *allocate(uint64_t bytes);
    void free(void *pointer, uint64_t bytes) noexcept;
    // Gives memory back whose communicator has gone.
    static void free_without(const yoke_backend_comm &table, void *pointer,
                             uint64_t bytes) noexcept;
    const yoke_backend_comm &table() const noexcept { return table_; }
    // Returns why an engine that runs late has failed by itself; nothing while it is well.
    std::optional<EngineFailure> async_error() const;
    std::string describe() const;

private:
    void check(yoke_status status) const;

    const yoke_backend_comm &table_;
    void *comm_ = nullptr;
};

}  // namespace yoke
