#include "core/comm/making.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <cstring>
#include <vector>

namespace yoke {

namespace {

// Text of a rank: its engine and its offer, a line each, and an id, made by rank 0.
struct Told {
    std::string engine;
    DeviceOffer offer;
    std::string id;

    std::string encode() const { return engine + "\n" + offer.encode() + "\n" + id; }
    static Told decode(const std::string &text)
    {
        const size_t first = text.find('\n'), second = text.find('\n', first + 1);
        return {text.substr(0, first),
                DeviceOffer::decode(std::string_view(text).substr(first + 1, second - first - 1)),
                text.substr(second + 1)};
    }
};

void check_one_engine(const std::vector<Told> &told, const Members &members, const char *call)
{
    for (size_t i = 1; i < told.size(); ++i)
        if (told[i].engine != told[0].engine)
            fail_in(
                call, YOKE_E_COMM,
                "ranks do not agree on the backend: %s has '%s', and %s '%s'; give all ranks the same backend",
                describe(members.ranks[0]).c_str(), told[0].engine.c_str(),
                describe(members.ranks[i]).c_str(), told[i].engine.c_str());
}

Made open_engine(const Members &members, const GroupOptions &options, GroupKeys &keys,
                 Failure &failure, Deadline deadline, const char *call)
{
    Made made;
    const yoke_backend_comm &table = Engine::find(host_engine_of(options.backend), call);
    EngineInit init;
    init.all_gather = [&](const std::string &mine) { return keys.gather(mine, deadline, call); };
    if (members.met) made.ports = ShrinkPorts(members.self(), init.all_gather);
    const double of_library = library_time_s(deadline.remaining_s());
    const Told mine{table.name,
                    DeviceOffer::of_this_rank(
                        options.backend, options.device ? options.device->kind() : "", of_library),
                    members.rank == 0 ? Engine::make_id(table, of_library) : std::string()};
    std::vector<Told> told;
    for (const std::string &each : init.all_gather(mine.encode()))
        told.push_back(Told::decode(each));
    check_one_engine(told, members, call);
    std::vector<DeviceOffer> offers;
    for (const Told &each : told) offers.push_back(each.offer);
    made.devices = choose(offers, members, call);
    init.id = told[0].id;
    init.rank = members.rank;
    init.size = members.size();
    init.address = members.self().address;
    init.timeout_s = deadline.remaining_s();
    init.patience_s = options.timeout_s;
    init.is_over = [&failure] { return failure.is_failed() || is_interrupted(); };
    made.engine = connect(table, init);
    return made;
}

}  // namespace

std::shared_ptr<Engine> connect(const yoke_backend_comm &table, const EngineInit &init)
try {
    return std::make_shared<Engine>(table, init);
} catch (const EngineFailure &) {
    Interruptible::check_here();
    throw;
}

Made make_engine(const Members &members, const GroupOptions &options, GroupKeys &keys,
                 Failure &failure, Deadline deadline, const char *call)
try {
    Made made = open_engine(members, options, keys, failure, deadline, call);
    failure.attach(made.engine);
    keys.note_made();
    return made;
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
        failure.check_table(call);  // if the store has gone, other errors follow from this
    } catch (const Error &error) {
        cause = Cause{error.status(), error.what()}.of(error.call());
    }
    failure.fail_alone(call, cause);
}

}  // namespace yoke
