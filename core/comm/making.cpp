#include "core/comm/making.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <cstring>
#include <vector>

namespace yoke {

namespace {

// Each rank tells its engine's name, a slash, and rank 0 an id.
void check_one_engine(const std::vector<std::string> &told, const Members &members,
                      const char *call)
{
    const auto name_of = [](const std::string &text) { return text.substr(0, text.find('/')); };
    for (size_t i = 1; i < told.size(); ++i)
        if (name_of(told[i]) != name_of(told[0]))
            fail_in(
                call, YOKE_E_COMM,
                "ranks do not agree on the backend: %s has '%s', and %s '%s'; give all the same",
                describe(members.ranks[0]).c_str(), name_of(told[0]).c_str(),
                describe(members.ranks[i]).c_str(), name_of(told[i]).c_str());
}

std::shared_ptr<Engine> connect(const yoke_backend_comm &table, const EngineInit &init)
try {
    return std::make_shared<Engine>(table, init);
} catch (const EngineFailure &) {
    Interruptible::check_here();
    throw;
}

std::shared_ptr<Engine> open_engine(const Members &members, const GroupOptions &options,
                                    GroupKeys &keys, Failure &failure, ShrinkPorts *ports,
                                    Deadline deadline, const char *call)
{
    const yoke_backend_comm &table = Engine::find(options.engine, call);
    EngineInit init;
    init.all_gather = [&](const std::string &mine) { return keys.gather(mine, deadline, call); };
    if (members.met) *ports = ShrinkPorts(members.self(), init.all_gather);
    const std::string own_id = members.rank == 0 ? Engine::make_id(table) : std::string();
    const std::vector<std::string> told = init.all_gather(table.name + ("/" + own_id));
    check_one_engine(told, members, call);
    init.id = told[0].substr(strlen(table.name) + 1);
    init.rank = members.rank;
    init.size = members.size();
    init.address = members.self().address;
    init.timeout_s = deadline.remaining_s();
    init.patience_s = options.timeout_s;
    init.is_over = [&failure] { return failure.is_failed() || is_interrupted(); };
    return connect(table, init);
}

}  // namespace

std::shared_ptr<Engine> make_engine(const Members &members, const GroupOptions &options,
                                    GroupKeys &keys, Failure &failure, ShrinkPorts *ports,
                                    Deadline deadline, const char *call)
try {
    auto engine = open_engine(members, options, keys, failure, ports, deadline, call);
    failure.attach(engine);
    keys.note_made();
    return engine;
} catch (const EngineFailure &found) {
    if (found.fault.kind == YOKE_COMM_FAULT_DIED) failure.await(call);
    CurrentCall current;
    current.making = call;
    failure.fail_alone(call, cause_of(found.fault, found.status, found.text, current,
                                      members.self(), members.ranks)
                                 .of(call));
} catch (const std::exception &) {
    Cause cause = cause_of(std::current_exception(), members.self(), call);
    try {
        failure.check_table(call);  // where the table has gone, all else follows from that
    } catch (const Error &error) {
        cause = Cause{error.status(), error.what()}.of(error.call());
    }
    failure.fail_alone(call, cause);
}

}  // namespace yoke
