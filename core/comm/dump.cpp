// Writer of dumps.
#include "core/comm/dump.h"

#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/comm/collective.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

namespace yoke {

DumpedCall dumped(const CallRecord &record)
{
    DumpedCall made{record, {}, {}, 0};
    made.call.line = nullptr;
    if (record.line) {
        made.file = record.line->file;
        made.function = record.line->function;
        made.line = record.line->line;
    }
    return made;
}

#ifdef YOKE_WITHOUT_JSON

std::string dump_text(const Dump &)
{
    fail(
        YOKE_E_UNSUPPORTED,
        "dump: this libyoke was built without nlohmann-json, which writes dumps; install it (Debian: nlohmann-json3-dev) and build again");
}

#else

namespace {

using nlohmann::ordered_json;

ordered_json value_if(bool is_known, ordered_json value)
{
    return is_known ? std::move(value) : ordered_json();
}

ordered_json json_of(const DumpedCall &each)
{
    const CallRecord &call = each.call;
    const yoke_comm_signature &signature = call.signature;
    const bool has_dtype = is_dtype(signature.dtype);
    ordered_json made = {
        {"sequence", signature.sequence},
        {"op", collective_name(call.op)},
        {"dtype", has_dtype ? ordered_json(name(signature.dtype)) : ordered_json()},
        {"count", signature.count},
        {"reduction", value_if(signature.reduction >= 0, reduction_name(signature.reduction))},
        {"peer", value_if(call.peer >= 0, call.peer)},
        {"state", CallRecord::kStates[call.state]},
        {"queued", call.queued_s},
        {"began", value_if(call.began_s > 0, call.began_s)},
        {"ended", value_if(call.ended_s > 0, call.ended_s)},
        {"file", value_if(!each.file.empty(), each.file)},
        {"line", value_if(each.line > 0, each.line)},
        {"function", value_if(!each.function.empty(), each.function)}};
    if (signature.on_device) made["on_device"] = true;
    return made;
}

ordered_json ranks_json(const Dump &dump)
{
    ordered_json all = ordered_json::array();
    for (const RankInfo &each : dump.ranks)
        all.push_back({{"host", each.host}, {"process", each.process}, {"machine", each.memory}});
    return all;
}

ordered_json json_of(const DumpedStoreCall &store_call)
{
    return {{"call", store_call.call},
            {"since", store_call.since_s},
            {"file", value_if(!store_call.file.empty(), store_call.file)},
            {"line", value_if(store_call.line > 0, store_call.line)},
            {"function", value_if(!store_call.function.empty(), store_call.function)}};
}

ordered_json json_of(const Cause &cause)
{
    return {{"status", cause.status}, {"name", status_name(cause.status)}, {"text", cause.text}};
}

ordered_json head_of(const Dump &dump)
{
    return {{"format", kDumpFormat},
            {"yoke", dump.yoke},
            {"group", format("0x%llx", static_cast<unsigned long long>(dump.group))},
            {"rank", dump.rank},
            {"ways", dump.ways},
            {"time", dump.time},
            {"now", dump.now_s},
            {"timeout", dump.timeout_s},
            {"cause", dump.cause ? json_of(*dump.cause) : ordered_json()},
            {"failed", value_if(dump.cause.has_value(), dump.failed_s)},
            {"ranks", ranks_json(dump)},
            {"rendezvous", dump.store_call ? json_of(*dump.store_call) : ordered_json()},
            {"calls", dump.calls},
            {"sent", dump.sent},
            {"received", dump.received}};
}

}  // namespace

// Returns the dump as JSON, with each record on a line of its own, so grep can read the file too.
std::string dump_text(const Dump &dump)
{
    const auto text = [](const ordered_json &value) {
        return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    };
    std::string all = text(head_of(dump));
    all.back() = ',';  // closing brace
    all += "\n\"records\": [";
    for (const DumpedCall &each : dump.records)
        all += (&each == dump.records.data() ? "\n" : ",\n") + text(json_of(each));
    return all + "]}\n";
}

#endif

}  // namespace yoke
