// engine.h: communicator of an engine of collectives, behind the contract of core/backend/comm.h.
#pragma once

#include "core/backend/comm.h"
#include "core/comm/cause_of.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// Exception for a failed engine, with its fault for cause_of.
struct EngineFailure {
    yoke_comm_fault fault;
    yoke_status status;
    std::string text;
};

// Returns a fault record without a fault and without a rank.
yoke_comm_fault no_fault() noexcept;

struct EngineInit {
    int32_t rank = 0, size = 1;
    std::string id;  // YOKE_COMM_ID_BYTES
    std::string address;
    double timeout_s = -1;  // time for the making
    double patience_s = 0;  // for calls without a time of their own
    void *device = nullptr;
    // Function that returns the texts of all ranks, in the order of ranks.
    std::function<std::vector<std::string>(const std::string &mine)> all_gather;
    std::function<bool()> is_over;  // returns whether waiting is useless now
};

class Engine {
public:
    // Returns the engine with this name: "cpu", also called "gloo", or a module's. Raises YOKE_E_VALUE with the known
    // names, YOKE_E_UNAVAILABLE with the reason if a module cannot be used, and YOKE_E_UNSUPPORTED in a build without
    // collectives.
    static const yoke_backend_comm &find(const std::string &name, const char *call);
    // Returns the id of a new communicator, which rank 0 makes for all ranks. This function and the functions below
    // raise EngineFailure, unless they are noexcept.
    static std::string make_id(const yoke_backend_comm &table, double timeout_s);

    Engine(const yoke_backend_comm &table, const EngineInit &init);
    ~Engine();
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    const char *name() const noexcept { return table_.name; }
    // Scope whose calls are issued together at its end; with a null engine, each call is issued by itself.
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
    // Makes this rank look dead to its peers, after an abort. Does nothing if the engine does not support this.
    void hang_up() noexcept;
    // Shows the peers that this rank has left, although tensors in the engine's memory keep the engine. No call may
    // follow.
    void leave() noexcept;
    void *allocate(uint64_t bytes);
    void free(void *pointer, uint64_t bytes) noexcept;
    // Gives memory back to the engine after the communicator of the memory has ended.
    static void free_without(const yoke_backend_comm &table, void *pointer,
                             uint64_t bytes) noexcept;
    const yoke_backend_comm &table() const noexcept { return table_; }
    // Returns the failure that an asynchronous engine has found by itself; null if there is no failure.
    std::optional<EngineFailure> async_error() const;
    std::string describe() const;

private:
    void check(yoke_status status) const;

    const yoke_backend_comm &table_;
    void *comm_ = nullptr;
};

}  // namespace yoke
