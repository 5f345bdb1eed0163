#include "core/comm/engine.h"

#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/comm/living_groups.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace yoke {

namespace {

[[noreturn]] void raise(const yoke_comm_fault &fault, yoke_status status, const char *engine)
{
    throw EngineFailure{fault, status, take_backend_error(status, engine)};
}

// Carrier of the core's all_gather through C. An error waits until the engine has returned.
struct Gathering {
    const EngineInit &init;
    std::exception_ptr raised = {};

    static yoke_status run(void *user, const void *mine, uint64_t bytes, void *all) noexcept
    {
        auto &self = *static_cast<Gathering *>(user);
        try {
            auto *to = static_cast<char *>(all);
            for (const std::string &each :
                 self.init.all_gather(std::string(static_cast<const char *>(mine), bytes))) {
                memcpy(to, each.data(), std::min<size_t>(each.size(), bytes));
                to += bytes;
            }
            return YOKE_OK;
        } catch (const std::exception &error) {
            self.raised = std::current_exception();
            return set_backend_error(YOKE_E_COMM, 0, error.what());
        }
    }

    static int32_t is_over(void *user) noexcept
    {
        return static_cast<Gathering *>(user)->init.is_over();
    }
};

}  // namespace

yoke_comm_fault no_fault() noexcept
{
    yoke_comm_fault fault{};
    fault.struct_size = sizeof fault;
    fault.rank = -1;
    return fault;
}

const yoke_backend_comm &Engine::find(const std::string &name, const char *call)
{
    if (const CommModule *module = comm_module_of(name)) {
        if (!module->table)
            fail_in(call, YOKE_E_UNAVAILABLE, "the engine '%s' cannot be used: %s", name.c_str(),
                    module->reason.c_str());
        return *module->table;
    }
    const bool has_address = name.find("://") != std::string::npos;
    if (name != kHostKind && name != "gloo")
        fail_in(call, YOKE_E_VALUE,
                "argument 'backend' is '%s'; it must be cpu (also called gloo), nccl or mpi%s",
                name.c_str(),
                has_address ? "; give the address as init_method='tcp://HOST:PORT'" : "");
    const Backend &backend = backend_of(kHostKind);
    if (!backend.table || !backend.table->comm)
        fail_in(call, YOKE_E_UNSUPPORTED, "this build has no collectives on the CPU");
    return *backend.table->comm;
}

std::string Engine::make_id(const yoke_backend_comm &table, double timeout_s)
{
    std::string id(YOKE_COMM_ID_BYTES, '\0');
    if (const yoke_status status = table.unique_id(id.data(), timeout_s))
        raise(no_fault(), status, table.name);
    return id;
}

Engine::Engine(const yoke_backend_comm &table, const EngineInit &init) : table_(table)
{
    yoke_comm_fault fault = no_fault();
    Gathering gathering{init};
    yoke_comm_member given{};
    given.struct_size = sizeof given;
    given.rank = init.rank;
    given.size = init.size;
    given.device = init.device;
    given.id = init.id.data();
    given.address = init.address.c_str();
    given.timeout_s = init.timeout_s;
    given.patience_s = init.patience_s;
    given.all_gather = Gathering::run;
    given.is_over = Gathering::is_over;
    given.user = &gathering;
    given.fault = &fault;
    if (table.share_exit) table.share_exit([] { return deadline_of_exit().remaining_s(); });
    const yoke_status status = table.init(&given, &comm_);
    if (status == YOKE_OK) return;
    if (gathering.raised) {
        take_backend_error(status, table.name);
        std::rethrow_exception(gathering.raised);
    }
    raise(fault, status, table.name);
}

Engine::~Engine()
{
    table_.destroy(comm_);
}

void Engine::check(yoke_status status) const
{
    if (status != YOKE_OK) raise(no_fault(), status, table_.name);
}

Engine::Together::Together(Engine *engine) : engine_(engine), fault_(no_fault())
{
    if (engine_) engine_->check(engine_->table_.group_begin(engine_->comm_));
}

void Engine::Together::end()
{
    Engine *const engine = std::exchange(engine_, nullptr);
    if (!engine) return;
    if (const yoke_status status = engine->table_.group_end(engine->comm_))
        raise(fault_, status, engine->name());
}

// Ends a scope that was not ended by end(), as after a failed call. Aborts the communicator, so no call of the scope
// is issued. group_end still runs, because the engine counts scopes.
Engine::Together::~Together()
{
    if (!engine_) return;
    engine_->abort();
    if (const yoke_status status = engine_->table_.group_end(engine_->comm_))
        take_backend_error(status, engine_->name());
}

void Engine::call(yoke_collective record, Together &in)
{
    record.fault = &in.fault_;
    if (const yoke_status status = table_.call(comm_, &record))
        raise(in.fault_, status, table_.name);
}

void Engine::abort() noexcept
{
    if (const yoke_status status = table_.abort(comm_)) take_backend_error(status, table_.name);
}

void Engine::hang_up() noexcept
{
    if (table_.hang_up) table_.hang_up(comm_);
}

// Aborts the communicator and hangs up. Does nothing for an engine without hang_up, which would only report the abort
// as a failure.
void Engine::leave() noexcept
{
    if (!table_.hang_up) return;
    abort();
    hang_up();
}

void *Engine::allocate(uint64_t bytes)
{
    void *pointer = nullptr;
    yoke_comm_fault fault = no_fault();
    if (const yoke_status status = table_.mem_alloc(comm_, bytes, &pointer, &fault))
        raise(fault, status, table_.name);
    return pointer;
}

void Engine::free(void *pointer, uint64_t bytes) noexcept
{
    if (const yoke_status status = table_.mem_free(comm_, pointer, bytes))
        take_backend_error(status, table_.name);
}

void Engine::free_without(const yoke_backend_comm &table, void *pointer, uint64_t bytes) noexcept
{
    if (const yoke_status status = table.mem_free(nullptr, pointer, bytes))
        take_backend_error(status, table.name);
}

std::optional<EngineFailure> Engine::async_error() const
{
    yoke_comm_fault fault = no_fault();
    const yoke_status status = table_.async_error(comm_, &fault);
    if (status == YOKE_OK) return std::nullopt;
    return EngineFailure{fault, status, take_backend_error(status, table_.name)};
}

std::string Engine::describe() const
{
    char text[512] = {};
    table_.describe(comm_, text, sizeof text);
    return text;
}

}  // namespace yoke
