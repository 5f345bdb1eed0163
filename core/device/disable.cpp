// Switching a kind of devices off, and on again.
#include "core/backend/registry.h"
#include "core/base/lent.h"
#include "core/device/kinds.h"

namespace yoke {

namespace {

constexpr size_t kMostNamed = 5;

// Returns the objects living on the devices of a kind, in words; "" if there are none.
std::string living(std::string_view kind)
{
    std::vector<std::string> names;
    int64_t count = 0;
    for (Device *device : opened_devices_of(kind)) {
        const int64_t before = count;
        for (const LiveFn tell : {lent.live_tensors, detail::live_streams, lent.live_groups})
            count += tell(*device, kMostNamed - names.size(), names);
        // Tensors name their own memory; memory without a tensor is named only if the device has no other objects.
        if (count == before) count += lent.live_memory(*device, kMostNamed - names.size(), names);
    }
    if (count == 0) return "";
    std::string text = join(names);
    if (static_cast<size_t>(count) > names.size())
        text += format(" and %lld more",
                       static_cast<long long>(count) - static_cast<long long>(names.size()));
    return text;
}

void check_kind(std::string_view kind, const char *call)
{
    const std::string name(kind);
    if (!is_known_kind(kind)) {
        std::vector<std::string> kinds = known_kinds();
        fail(YOKE_E_VALUE, "%s: there is no device kind '%s'; the kinds are %s", call, name.c_str(),
             join(kinds).c_str());
    }
    if (kind == kHostKind)
        fail(
            YOKE_E_VALUE,
            "%s: the cpu cannot be disabled, because all data starts there; to keep work off the cpu, set YOKE_PLATFORMS to the allowed kinds",
            call);
}

void check_unused(std::string_view kind)
{
    const std::string text = living(kind);
    if (!text.empty())
        fail(YOKE_E_STATE,
             "disable: %s is in use: %s; release these objects, or move them to the cpu, first",
             std::string(kind).c_str(), text.c_str());
}

}  // namespace

void disable(std::string_view kind)
{
    check_kind(kind, "disable");
    // Before the kind is switched off: threads working on living objects must not notice a failing call.
    check_unused(kind);
    count_disabled(kind, 1);
    // Once more, for what came to life between the two.
    try {
        check_unused(kind);
    } catch (...) {
        count_disabled(kind, -1);
        throw;
    }
}

void enable(std::string_view kind)
{
    check_kind(kind, "enable");
    count_disabled(kind, -1);
}

}  // namespace yoke
