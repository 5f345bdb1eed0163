#include "yoke/select.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/backend/registry.h"
#include "core/machine/proc.h"
#include "core/machine/snapshot.h"
#include "core/machine/topology.h"
#include "core/select/candidates.h"
#include "core/select/lease.h"
#include "core/select/select.h"

#include <algorithm>
#include <memory>

using namespace yoke;
using namespace yoke::capi;

struct yoke_explanation final {
    Ref<yoke_inventory> inventory;
    std::vector<yoke_candidate> candidates;
    std::string problem, visible;
};

namespace {

yoke_candidate candidate_of(const Verdict &verdict)
{
    yoke_candidate made{};
    made.struct_size = sizeof made;
    made.accepted = verdict.accepted;
    made.chosen = verdict.place;
    made.card = verdict.card;
    put(made.device, verdict.device);
    put(made.reason, verdict.reason);
    return made;
}

// Returns the value of CUDA_VISIBLE_DEVICES for the chosen cards: UUIDs, because numbers change their meaning once
// the variable is set. If a card has no UUID, returns "" and the reason in `problem`. The variable would hide such a
// card, and, if it is the only card, every other card too.
std::string visible_text(const Machine &machine, const std::vector<int> &chosen,
                         std::string &problem)
{
    std::vector<std::string> uuids;
    for (const int card : chosen) {
        if (card == kCpuCandidate) continue;
        const yoke_card_info &info = machine.card(card).info;
        if (*info.uuid) {
            uuids.push_back(info.uuid);
            continue;
        }
        problem = format(
            "%s at %s fits, but its UUID for CUDA_VISIBLE_DEVICES is not known; install the driver's libnvidia-ml.so.1, or choose in the program: yoke.device('pci:%s')",
            info.name, info.pci, info.pci);
        return "";
    }
    return join(uuids, ",");
}

std::unique_ptr<yoke_explanation> explain(std::string_view text)
{
    const Spec spec = parse_spec(text);
    Candidates all = find_candidates(spec, false);
    const Choice choice = choose(all.machine, all.situation, spec, spec.count);
    auto made = std::make_unique<yoke_explanation>();
    for (const Verdict &verdict : choice.verdicts)
        made->candidates.push_back(candidate_of(verdict));
    made->problem = choice.problem;
    made->visible = visible_text(all.machine, choice.chosen, made->problem);
    made->inventory = Ref<yoke_inventory>::adopt(new yoke_inventory);
    made->inventory->topology = topology_text(all.machine);
    made->inventory->machine = std::move(all.machine);
    return made;
}

}  // namespace

yoke_status yoke_select(const char *spec, int32_t n, yoke_device **devices, int32_t capacity,
                        int32_t *count)
{
    constexpr const char *call = "yoke_select";
    return guard(call, [&] {
        int32_t &found = need(count, call, "count");
        if (n < 0)
            fail(YOKE_E_VALUE,
                 "%s: argument 'n' is %d; give how many devices, or 0 for the spec's own n",
                 short_name(call), n);
        const auto places = need_list(devices, capacity, call, "devices");
        const char *text = spec ? spec : "auto";
        const int32_t wanted = std::max({n, parse_spec(text).count, 1});
        if (wanted > capacity)
            fail(
                YOKE_E_VALUE,
                "%s: argument 'capacity' is %d, but %d devices are requested; give a larger capacity",
                short_name(call), capacity, wanted);
        const std::vector<Device *> chosen = select_devices(text, n);
        for (size_t i = 0; i < chosen.size(); ++i) {
            chosen[i]->retain();
            places[i] = chosen[i];
        }
        found = static_cast<int32_t>(chosen.size());
    });
}

yoke_status yoke_explain(const char *spec, yoke_explanation **out)
{
    constexpr const char *call = "yoke_explain";
    return guard(call, [&] {
        yoke_explanation *&place = need_out(out, call);
        place = hand_out(explain(spec ? spec : "auto"));
    });
}

void yoke_explanation_release(yoke_explanation *explanation)
{
    delete take_back(explanation, "yoke_explanation_release");
}

int32_t yoke_explanation_count(yoke_explanation *explanation)
{
    constexpr const char *call = "yoke_explanation_count";
    return guard_value(call, -1, [&] {
        return static_cast<int32_t>(need(explanation, call, "explanation").candidates.size());
    });
}

yoke_status yoke_explanation_get(yoke_explanation *explanation, int32_t index,
                                 yoke_candidate *candidate)
{
    constexpr const char *call = "yoke_explanation_get";
    return guard(call, [&] {
        const auto &all = need(explanation, call, "explanation").candidates;
        if (index < 0 || static_cast<size_t>(index) >= all.size())
            fail(YOKE_E_INDEX,
                 "%s: argument 'index' is %d; there are %zu candidates, counted from 0",
                 short_name(call), index, all.size());
        write_struct(candidate, all[static_cast<size_t>(index)], call, "candidate");
    });
}

yoke_inventory *yoke_explanation_inventory(yoke_explanation *explanation)
{
    constexpr const char *call = "yoke_explanation_inventory";
    return guard_value(call, static_cast<yoke_inventory *>(nullptr), [&] {
        return lend<yoke_inventory>(need(explanation, call, "explanation").inventory.get());
    });
}

const char *yoke_explanation_problem(yoke_explanation *explanation)
{
    constexpr const char *call = "yoke_explanation_problem";
    return guard_value(call, static_cast<const char *>(nullptr),
                       [&] { return need(explanation, call, "explanation").problem.c_str(); });
}

const char *yoke_explanation_visible(yoke_explanation *explanation)
{
    constexpr const char *call = "yoke_explanation_visible";
    return guard_value(call, static_cast<const char *>(nullptr),
                       [&] { return need(explanation, call, "explanation").visible.c_str(); });
}

yoke_status yoke_device_card(yoke_device *device, yoke_card_info *card)
{
    constexpr const char *call = "yoke_device_card";
    return guard(call, [&] {
        const yoke_backend_device_info &told = need(device, call, "device").info;
        Card known = unknown_card();
        put(known.info.name, told.name);
        put(known.info.uuid, told.uuid);
        put(known.info.pci, normal_pci(told.pci));
        known.info.memory_total = static_cast<int64_t>(told.total_memory);
        if (told.multiprocessors > 0) known.info.multiprocessors = told.multiprocessors;
        if (told.cc_major > 0)
            known.info.cc_major = told.cc_major, known.info.cc_minor = told.cc_minor;
        write_struct(card, known.info, call, "card");
    });
}

yoke_status yoke_device_lease(yoke_device *device)
{
    constexpr const char *call = "yoke_device_lease";
    return guard(call, [&] {
        const Device &asked = need(device, call, "device");
        check_usable(asked);
        if (asked.host)
            fail(
                YOKE_E_UNSUPPORTED,
                "%s: argument 'device' is the cpu, which has no lease; use the cpu without a lease",
                short_name(call));
        const std::string key = lease_key(asked);
        Machine place;
        read_place(configured_root(), place);
        warn_of_private_leases(place.container);
        if (take_lease(key)) return;
        const int32_t holder = lease_holder(key);
        fail(
            YOKE_E_UNAVAILABLE,
            "%s: %s (%s, %s) is leased by %s; ask for another device, or wait for its release with auto:lease,wait=60s",
            short_name(call), asked.name.c_str(), asked.info.name, key.c_str(),
            holder > 0 ? format("process %d", holder).c_str() : "another process");
    });
}

yoke_status yoke_device_release_lease(yoke_device *device)
{
    constexpr const char *call = "yoke_device_release_lease";
    return guard(call, [&] {
        const Device &asked = need(device, call, "device");
        if (!asked.host) drop_lease(lease_key(asked));
    });
}

int32_t yoke_device_is_leased(yoke_device *device)
{
    constexpr const char *call = "yoke_device_is_leased";
    return guard_value(call, 0, [&] {
        const Device &asked = need(device, call, "device");
        return !asked.host && holds_lease(lease_key(asked)) ? 1 : 0;
    });
}

yoke_status yoke_lease_holder(const char *uuid, int32_t *pid)
{
    constexpr const char *call = "yoke_lease_holder";
    return guard(call, [&] {
        int32_t &place = need(pid, call, "pid");
        place = lease_holder(lease_key_of(&need(uuid, call, "uuid")));
    });
}

yoke_status yoke_disable(const char *kind)
{
    constexpr const char *call = "yoke_disable";
    return guard(call, [&] { disable(&need(kind, call, "kind")); });
}

yoke_status yoke_enable(const char *kind)
{
    constexpr const char *call = "yoke_enable";
    return guard(call, [&] { enable(&need(kind, call, "kind")); });
}
