#include "yoke/inventory.h"
#include "core/base/text.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/device/sample.h"
#include "core/machine/facts.h"
#include "core/machine/snapshot.h"
#include "core/machine/topology.h"

#include <memory>
#include <string_view>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Returns item `index` of a list; raises YOKE_E_INDEX, naming the argument.
template <class List>
auto &item(List &list, int32_t index, const char *call, const char *argument, const char *what)
{
    if (index < 0 || static_cast<size_t>(index) >= list.size())
        fail(YOKE_E_INDEX, "%s: argument '%s' is %d; there are %zu %s, counted from 0",
             short_name(call), argument, index, list.size(), what);
    return list[static_cast<size_t>(index)];
}

const Machine &machine_of(yoke_inventory *inventory, const char *call)
{
    return need(inventory, call, "inventory").machine;
}

const Card &card_of(yoke_inventory *inventory, int32_t index, const char *call,
                    const char *argument = "index")
{
    return item(machine_of(inventory, call).cards, index, call, argument, "cards");
}

const std::string &fact_of(const yoke_inventory &inventory, const std::string &key,
                           const char *call)
{
    const auto found = inventory.facts.find(key);
    if (found != inventory.facts.end()) return found->second;
    std::string all;
    for (const NamedFact &each : named_facts()) add_part(all, each.key);
    fail(YOKE_E_VALUE, "%s: argument 'key' is '%s'; the keys are %s", short_name(call), key.c_str(),
         all.c_str());
}

}  // namespace

yoke_status yoke_inventory_take(yoke_inventory **out)
{
    constexpr const char *call = "yoke_inventory_take";
    return guard(call, [&] {
        yoke_inventory *&place = need_out(out, call);
        auto made = Ref<yoke_inventory>::adopt(new yoke_inventory);
        made->machine = take_inventory();
        made->topology = topology_text(made->machine);
        for (const NamedFact &each : named_facts())
            made->facts.emplace(each.key, each.text(made->machine));
        place = hand_out<yoke_inventory>(std::move(made));
    });
}

yoke_inventory *yoke_inventory_retain(yoke_inventory *inventory)
{
    return retain_handle(inventory, "yoke_inventory_retain");
}

void yoke_inventory_release(yoke_inventory *inventory)
{
    release_handle(inventory, "yoke_inventory_release");
}

int32_t yoke_inventory_count(yoke_inventory *inventory)
{
    constexpr const char *call = "yoke_inventory_count";
    return guard_value(
        call, -1, [&] { return static_cast<int32_t>(machine_of(inventory, call).cards.size()); });
}

yoke_status yoke_inventory_card(yoke_inventory *inventory, int32_t index, yoke_card_info *card)
{
    constexpr const char *call = "yoke_inventory_card";
    return guard(call,
                 [&] { write_struct(card, card_of(inventory, index, call).info, call, "card"); });
}

yoke_status yoke_inventory_fact(yoke_inventory *inventory, const char *key, const char **text)
{
    constexpr const char *call = "yoke_inventory_fact";
    return guard(call, [&] {
        const char *&place = need_out(text, call, "text");
        place = fact_of(need(inventory, call, "inventory"), &need(key, call, "key"), call).c_str();
    });
}

yoke_status yoke_inventory_process(yoke_inventory *inventory, int32_t index, int32_t which,
                                   yoke_card_process *process)
{
    constexpr const char *call = "yoke_inventory_process";
    return guard(call, [&] {
        const Card &card = card_of(inventory, index, call);
        write_struct(process, item(card.processes, which, call, "which", "processes on this card"),
                     call, "process");
    });
}

yoke_status yoke_inventory_link(yoke_inventory *inventory, int32_t a, int32_t b,
                                yoke_card_link *link)
{
    constexpr const char *call = "yoke_inventory_link";
    return guard(call, [&] {
        card_of(inventory, a, call, "a");
        card_of(inventory, b, call, "b");
        write_struct(link, machine_of(inventory, call).link(a, b), call, "link");
    });
}

int32_t yoke_inventory_network_count(yoke_inventory *inventory)
{
    constexpr const char *call = "yoke_inventory_network_count";
    return guard_value(call, -1, [&] {
        return static_cast<int32_t>(machine_of(inventory, call).networks.size());
    });
}

yoke_status yoke_inventory_network(yoke_inventory *inventory, int32_t index, int32_t card,
                                   yoke_network_card *network, int32_t *path)
{
    constexpr const char *call = "yoke_inventory_network";
    return guard(call, [&] {
        const NetworkCard &found =
            item(machine_of(inventory, call).networks, index, call, "index", "networks");
        // Without a path there is no card to name.
        const Card *from = path ? &card_of(inventory, card, call, "card") : nullptr;
        write_struct(network, found.info, call, "network");
        if (from)
            *path = path_between(from->bridges, from->info.pci, from->info.numa_node, found.bridges,
                                 found.info.pci, found.info.numa_node);
    });
}

const char *yoke_path_label(int32_t path)
{
    return path_label(path);
}

const char *yoke_inventory_topology(yoke_inventory *inventory)
{
    constexpr const char *call = "yoke_inventory_topology";
    return guard_value(call, static_cast<const char *>(nullptr),
                       [&] { return need(inventory, call, "inventory").topology.c_str(); });
}

yoke_status yoke_device_sample(yoke_device *device, yoke_card_info *card)
{
    constexpr const char *call = "yoke_device_sample";
    return guard(call, [&] {
        const Device &asked = need(device, call, "device");
        // A size that cannot be meant is refused before the driver is asked.
        check_struct_size(need(card, call, "card").struct_size, sizeof *card, call, "card");
        write_struct(card, sample_device(asked).info, call, "card");
    });
}
