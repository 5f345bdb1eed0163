// Reader of dumps, for any content of the file: core/comm/dump.h.
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/collective.h"
#include "core/comm/dump.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <charconv>
#include <cmath>
#include <iterator>

namespace yoke {

#ifdef YOKE_WITHOUT_JSON

Dump read_dump(std::string_view)
{
    fail(
        YOKE_E_UNSUPPORTED,
        "this libyoke cannot read dumps: it was built without nlohmann-json; install nlohmann-json (Debian: nlohmann-json3-dev) and build again");
}

#else

namespace {

using nlohmann::json;

// Object of the file, and its place there: "records[3]", or "" for the whole.
class Object {
public:
    Object(const json &value, std::string place) : value_(value), place_(std::move(place))
    {
        if (!value_.is_object()) refuse("", "an object");
    }

    [[noreturn]] void refuse(const char *key, const char *wanted) const
    {
        const std::string place = place_ + (place_.empty() || !*key ? "" : ".") + key;
        fail(YOKE_E_VALUE, "not a dump of a group: %s is not %s",
             place.empty() ? "the text" : ("'" + place + "'").c_str(), wanted);
    }
    const json &at(const char *key) const
    {
        static const json none;
        const auto found = value_.find(key);
        return found == value_.end() ? none : *found;
    }
    bool has(const char *key) const { return !at(key).is_null(); }

    int64_t integer(const char *key, int64_t least, int64_t most) const
    {
        const json &value = at(key);
        const bool fits = value.is_number_integer() &&
                          !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
        const int64_t number = fits ? value.get<int64_t>() : 0;
        if (!fits || number < least || number > most)
            refuse(key, format("a whole number from %lld to %lld", static_cast<long long>(least),
                               static_cast<long long>(most))
                            .c_str());
        return number;
    }
    int64_t integer_or(const char *key, int64_t otherwise, int64_t most) const
    {
        return has(key) ? integer(key, 0, most) : otherwise;
    }
    double seconds(const char *key) const
    {
        const json &value = at(key);
        if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0)
            refuse(key, "a number of seconds");
        return value.get<double>();
    }
    double seconds_or_0(const char *key) const { return has(key) ? seconds(key) : 0; }
    std::string text(const char *key) const
    {
        if (!at(key).is_string()) refuse(key, "a string");
        return at(key).get<std::string>();
    }
    std::string text_or_none(const char *key) const { return has(key) ? text(key) : ""; }
    const json &list(const char *key) const
    {
        if (!at(key).is_array()) refuse(key, "a list");
        return at(key);
    }
    // Returns the i for which name_of(i) is the key's text. Raises YOKE_E_VALUE if no i below `count` fits.
    template <class Name>
    int32_t word(const char *key, int32_t count, const Name &name_of) const
    {
        const std::string given = text(key);
        for (int32_t i = 0; i < count; ++i)
            if (given == name_of(i)) return i;
        refuse(key, "a word that this version recognizes");
    }
    Object part(const char *key, size_t place, const json &value) const
    {
        return {value, format("%s[%zu]", key, place)};
    }
    Object part(const char *key) const { return {at(key), key}; }

private:
    const json &value_;
    const std::string place_;
};

int32_t dtype_of(const Object &at)
{
    if (!at.has("dtype")) return YOKE_NONE;
    const yoke_dtype found = dtype_from_name(at.text("dtype"));
    if (found == YOKE_NONE) at.refuse("dtype", "a dtype of this version");
    return found;
}

DumpedCall call_of(const Object &at, const Dump &dump)
{
    constexpr int32_t kReductionCount = YOKE_REDUCE_AVG + 1;
    DumpedCall made;
    CallRecord &call = made.call;
    yoke_comm_signature &signature = call.signature;
    call.op = at.word("op", kCallCount, collective_name);
    call.peer = static_cast<int32_t>(at.integer_or("peer", -1, dump.size() - 1));
    const bool is_between = call.op == YOKE_COMM_SEND || call.op == YOKE_COMM_RECV;
    if (is_between && call.peer < 0) at.refuse("peer", "a rank");
    signature.group = dump.group;
    signature.sequence = static_cast<uint64_t>(at.integer("sequence", 1, INT64_MAX));
    signature.count = at.integer("count", 0, INT64_MAX);
    signature.op = is_between ? YOKE_COMM_SEND : call.op;
    signature.dtype = dtype_of(at);
    signature.reduction =
        at.has("reduction") ? at.word("reduction", kReductionCount, reduction_name) : -1;
    signature.root = call.op == YOKE_COMM_RECV ? dump.rank : call.peer;
    call.state =
        static_cast<CallRecord::State>(at.word("state", std::ssize(CallRecord::kStates),
                                               [](int32_t i) { return CallRecord::kStates[i]; }));
    signature.on_device = at.has("on_device") ? 1 : 0;
    call.queued_s = at.seconds("queued");
    call.began_s = at.seconds_or_0("began");
    call.ended_s = at.seconds_or_0("ended");
    made.file = at.text_or_none("file");
    made.function = at.text_or_none("function");
    made.line = static_cast<int32_t>(at.integer_or("line", 0, INT32_MAX));
    return made;
}

DumpedStoreCall store_call_of(const Object &at)
{
    DumpedStoreCall made;
    made.call = at.text("call");
    made.since_s = at.seconds("since");
    made.file = at.text_or_none("file");
    made.function = at.text_or_none("function");
    made.line = static_cast<int32_t>(at.integer_or("line", 0, INT32_MAX));
    return made;
}

std::vector<RankInfo> ranks_of(const Object &root)
{
    std::vector<RankInfo> all;
    const json &list = root.list("ranks");
    if (list.empty()) root.refuse("ranks", "a list of at least one rank");
    for (size_t i = 0; i < list.size(); ++i) {
        const Object at = root.part("ranks", i, list[i]);
        RankInfo rank;
        rank.rank = static_cast<int32_t>(i);
        rank.size = static_cast<int32_t>(list.size());
        rank.host = at.text("host");
        rank.process = at.integer("process", 0, INT64_MAX);
        rank.memory = at.text_or_none("machine");
        all.push_back(std::move(rank));
    }
    return all;
}

std::vector<uint64_t> counts_of(const Object &root, const char *key, const Dump &dump)
{
    std::vector<uint64_t> all;
    for (const json &each : root.list(key)) {
        if (!each.is_number_unsigned() || each.get<uint64_t>() > INT64_MAX)
            root.refuse(key, "a list of counts");
        all.push_back(each.get<uint64_t>());
    }
    if (std::ssize(all) != dump.size()) root.refuse(key, "a list with a count for each rank");
    return all;
}

Cause cause_in(const Object &at)
{
    return {static_cast<yoke_status>(at.integer("status", 0, INT32_MAX)), at.text("text")};
}

uint64_t group_of(const Object &root)
{
    const std::string text = root.text("group");
    uint64_t number = 0;
    if (text.starts_with("0x")) {
        const char *const last = text.data() + text.size();
        const auto [end, problem] = std::from_chars(text.data() + 2, last, number, 16);
        if (problem == std::errc() && end == last) return number;
    }
    root.refuse("group", "a number, \"0x1f\"");
}

// Parses JSON. Raises YOKE_E_VALUE for other text, and for text with more than 8 levels, before the parser keeps it.
// A dump has four levels.
json parsed_text(std::string_view text)
{
    constexpr int kDeepest = 8;
    const auto keep = [&](int depth, json::parse_event_t, json &) {
        if (depth > kDeepest)
            fail(YOKE_E_VALUE,
                 "not a dump of a group: lists and objects are nested more than %d deep", kDeepest);
        return true;
    };
    try {
        return json::parse(text.begin(), text.end(), keep);
    } catch (const json::exception &error) {
        fail(YOKE_E_VALUE, "not a dump of a group: %s", shown_name(error.what()).c_str());
    }
}

}  // namespace

Dump read_dump(std::string_view text)
{
    const json value = parsed_text(text);
    const Object root(value, "");
    Dump dump;
    if (root.integer("format", 1, INT64_MAX) > kDumpFormat)
        root.refuse(
            "format",
            "a format that this version reads; use the version of Yoke that wrote the dump");
    dump.yoke = root.text("yoke");
    dump.ways = root.text_or_none("ways");
    dump.time = root.text("time");
    dump.group = group_of(root);
    dump.ranks = ranks_of(root);
    dump.rank = static_cast<int32_t>(root.integer("rank", 0, dump.size() - 1));
    dump.now_s = root.seconds("now");
    dump.timeout_s = root.seconds_or_0("timeout");
    if (root.has("cause")) dump.cause = cause_in(root.part("cause"));
    dump.failed_s = root.seconds_or_0("failed");
    for (const char *key : {"rendezvous", "meeting"})  // the second is of older dumps
        if (root.has(key)) dump.store_call = store_call_of(root.part(key));
    dump.calls = static_cast<uint64_t>(root.integer("calls", 0, INT64_MAX));
    dump.sent = counts_of(root, "sent", dump);
    dump.received = counts_of(root, "received", dump);
    const json &records = root.list("records");
    for (size_t i = 0; i < records.size(); ++i)
        dump.records.push_back(call_of(root.part("records", i, records[i]), dump));
    return dump;
}

#endif

}  // namespace yoke
