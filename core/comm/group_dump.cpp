// What a group tells of itself in a file: core/comm/dump.h.
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/comm/dump_failure.h"
#include "core/comm/group.h"
#include "core/state/manifest.h"

namespace yoke {

namespace {

DumpedStoreCall met(const char *call, double since_s, const ScriptLine *line)
{
    DumpedStoreCall made{call, since_s, {}, {}, 0};
    if (line) made.file = line->file, made.function = line->function, made.line = line->line;
    return made;
}

}  // namespace

Group::StoreCall::StoreCall(Group &group, const char *call) : group_(group)
{
    const ScriptLine *const line = script_line();
    const std::lock_guard lock(group.mutex_);
    group.store_call_ = {call, monotonic_seconds(), line};
}

Group::StoreCall::~StoreCall()
{
    const std::lock_guard lock(group_.mutex_);
    group_.store_call_.call = nullptr;
}

// `failing`: what it is about to fail with.
Dump Group::look(const Cause *failing) const
{
    Dump dump;
    dump.yoke = format("%d.%d.%d", YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR, YOKE_VERSION_PATCH);
    dump.group = members_.number;
    dump.rank = rank();
    dump.ranks = members_.ranks;
    dump.timeout_s = options_.timeout_s;
    dump.time = utc_time();
    std::vector<CallRecord> records;
    std::shared_ptr<Engine> engine;
    {
        const std::lock_guard lock(mutex_);
        dump.now_s = monotonic_seconds();
        if (cause_)
            dump.cause = cause_, dump.failed_s = failed_s_;
        else if (failing)
            dump.cause = *failing, dump.failed_s = dump.now_s;
        dump.calls = sequence_;
        dump.sent = sent_;
        dump.received = received_;
        records = records_.all();
        if (store_call_.call)
            dump.store_call = met(store_call_.call, store_call_.since_s, store_call_.line);
        engine = engine_;
    }
    if (engine) dump.ways = format("%s: ", engine->name()) + engine->describe();
    for (const CallRecord &each : records) dump.records.push_back(dumped(each));
    return dump;
}

void Group::dump(const std::string &path) const
{
    check_process();
    write_dump(look(nullptr), path);
}

// Where YOKE_COMM_DUMP asks for it.
FailureDump Group::dump_of(const Cause &cause) const noexcept
try {
    const char *const folder = config_or_null("YOKE_COMM_DUMP");
    return folder ? FailureDump(folder, look(&cause)) : FailureDump();
} catch (const std::exception &failure) {
    log_no_dump(failure);
    return {};
}

}  // namespace yoke
