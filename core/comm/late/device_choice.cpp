#include "core/comm/late/device_choice.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/device/kinds.h"

#include <algorithm>

namespace yoke {

namespace {

bool is_late_engine(std::string_view backend)
{
    return *kind_reducing_by(backend) != '\0';
}

// Returns the engine that serves a kind of devices. Returns null, with the reason in *why_not, if the kind or its
// engine cannot be used.
const yoke_backend_comm *late_table_of(const std::string &kind, std::string *why_not)
{
    if (!platforms().allow(kind)) {
        *why_not = format("YOKE_PLATFORMS does not name %s", kind.c_str());
        return nullptr;
    }
    if (is_disabled(kind)) {
        *why_not = disabled_text(kind);
        return nullptr;
    }
    const Backend &backend = backend_of(kind);
    if (!backend.table)
        *why_not = backend.reason;
    else if (!backend.table->comm || !backend.table->comm->is_late)
        *why_not = format("this build's module of %s has no engine of collectives", kind.c_str());
    else
        return backend.table->comm;
    return nullptr;
}

// Returns the first kind with its own engine of collectives; "" if no such kind is known here.
std::string kind_with_engine()
{
    for (const std::string &kind : known_kinds())
        if (*traits_of(kind).collectives) return kind;
    return "";
}

std::string one_line(std::string text)
{
    std::ranges::replace(text, '\n', ' ');
    return text;
}

std::string version_text(int32_t version)
{
    return format("%d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
}

// Returns why the engine cannot serve all ranks; "" if it can.
std::string why_not_all(const std::vector<DeviceOffer> &offers, const Members &members)
{
    for (size_t i = 0; i < offers.size(); ++i) {
        const std::string who = describe(members.ranks[i]);
        if (!offers[i].backend.empty() && !is_late_engine(offers[i].backend))
            return format("%s was made with backend '%s'", who.c_str(), offers[i].backend.c_str());
        if (!offers[i].version) return format("%s: %s", who.c_str(), offers[i].why_not.c_str());
        if (offers[i].engine != offers[0].engine || offers[i].version != offers[0].version)
            return format(
                "%s has %s %s and %s has %s %s, which cannot work together; install one version on all machines",
                describe(members.ranks[0]).c_str(), offers[0].engine.c_str(),
                version_text(offers[0].version).c_str(), who.c_str(), offers[i].engine.c_str(),
                version_text(offers[i].version).c_str());
    }
    return "";
}

void check_alike(const std::vector<DeviceOffer> &offers, const Members &members, const char *call)
{
    for (size_t i = 1; i < offers.size(); ++i) {
        if (offers[i].device == offers[0].device) continue;
        const std::string first = describe(members.ranks[0]), other = describe(members.ranks[i]);
        if (!offers[0].device.empty() && !offers[i].device.empty())
            fail_in(
                call, YOKE_E_VALUE,
                "argument 'device' is a device of the kind %s on %s and of the kind %s on %s; give devices of one kind on all ranks",
                offers[0].device.c_str(), first.c_str(), offers[i].device.c_str(), other.c_str());
        const bool is_given_by_first = offers[i].device.empty();
        fail_in(
            call, YOKE_E_VALUE,
            "argument 'device' is given on %s and missing on %s; give 'device' on all ranks, or on none",
            (is_given_by_first ? first : other).c_str(),
            (is_given_by_first ? other : first).c_str());
    }
}

}  // namespace

std::string host_engine_of(const std::string &backend)
{
    return backend.empty() || is_late_engine(backend) ? kHostKind : backend;
}

DeviceOffer DeviceOffer::of_this_rank(const std::string &backend, const std::string &device,
                                      double timeout_s)
{
    DeviceOffer offer{backend, device, "", 0, ""};
    const std::string kind = kind_with_engine();
    if (kind.empty() || (!backend.empty() && !is_late_engine(backend))) return offer;
    offer.engine = traits_of(kind).collectives;
    const yoke_backend_comm *table = late_table_of(kind, &offer.why_not);
    if (!table) return offer;
    char why[512] = {};
    offer.version = table->version(timeout_s, why, sizeof why);
    if (!offer.version) offer.why_not = why;
    return offer;
}

std::string DeviceOffer::encode() const
{
    return format("%s\t%s\t%s\t%d\t%s", backend.c_str(), device.c_str(), engine.c_str(), version,
                  one_line(why_not).c_str());
}

DeviceOffer DeviceOffer::decode(std::string_view line)
{
    const auto next = [&line] {
        const size_t end = std::min(line.find('\t'), line.size());
        const std::string field(line.substr(0, end));
        line.remove_prefix(std::min(end + 1, line.size()));
        return field;
    };
    DeviceOffer offer;
    offer.backend = next();
    offer.device = next();
    offer.engine = next();
    offer.version = parsed<int32_t>(next()).value_or(0);
    offer.why_not = line;
    return offer;
}

DeviceChoice choose(const std::vector<DeviceOffer> &offers, const Members &members,
                    const char *call)
{
    check_alike(offers, members, call);
    const auto is_wanted = [](const DeviceOffer &each) { return is_late_engine(each.backend); };
    const auto is_free = [](const DeviceOffer &each) { return each.backend.empty(); };
    const DeviceOffer &mine = offers[static_cast<size_t>(members.rank)];
    const auto wanted = std::ranges::find_if(offers, is_wanted);
    if (wanted == offers.end() && std::ranges::none_of(offers, is_free)) return {};
    const std::string why_not = why_not_all(offers, members);
    if (!why_not.empty() && wanted != offers.end())
        fail_in(call, YOKE_E_UNAVAILABLE, "the backend '%s' cannot serve all ranks: %s",
                wanted->backend.c_str(), why_not.c_str());
    const std::string kind = kind_reducing_by(mine.engine);
    if (!why_not.empty()) return {nullptr, kind, why_not};
    return {backend_of(kind).table->comm, kind, ""};
}

}  // namespace yoke
