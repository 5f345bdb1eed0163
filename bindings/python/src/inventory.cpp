// inventory.cpp: inventory of the machine, as dicts; yoke/_inventory.py makes objects of them.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"

#include "bindings/common/inventory_keys.h"

#include <cmath>
#include <memory>
#include <string>

namespace yoke_python {
namespace {

py::object known(double value)
{
    return std::isnan(value) ? py::object(py::none()) : py::float_(value);
}
py::object known_int(int64_t value)
{
    return value < 0 ? py::object(py::none()) : py::int_(value);
}
py::object truth(int32_t value)
{
    return value < 0 ? py::object(py::none()) : py::bool_(value != 0);
}

template <class Struct, class Function, class... Args>
Struct filled(Function function, Args... args)
{
    Struct result{};
    result.struct_size = sizeof result;
    check(function(args..., &result));
    return result;
}

py::dict process_dict(const yoke_card_process &process)
{
    py::dict all;
#define PROCESS_TEXT(field) all[#field] = text_of(process.field);
#define PROCESS_INT(field) all[#field] = known_int(process.field);
#define PROCESS_YES(field) all[#field] = truth(process.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

py::dict network_dict(const yoke_network_card &network)
{
    py::dict all;
#define NETWORK_TEXT(field) all[#field] = text_of(network.field);
#define NETWORK_INT(field) all[#field] = known_int(network.field);
#define NETWORK_YES(field) all[#field] = truth(network.field);
#define NETWORK_REAL(field) all[#field] = known(network.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

py::dict link_dict(const yoke_card_link &link)
{
    py::dict all;
#define LINK_TEXT(field) all[#field] = text_of(link.field);
#define LINK_INT(field) all[#field] = link.field;
#define LINK_YES(field) all[#field] = truth(link.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

using Inventory = std::unique_ptr<yoke_inventory, void (*)(yoke_inventory *)>;

Inventory take()
{
    yoke_inventory *handle = nullptr;
    yoke_status status;
    {
        const ReleaseGil release;  // the driver may take its time
        status = yoke_inventory_take(&handle);
    }
    check(status);
    return {handle, yoke_inventory_release};
}

// Returns a card's fields; None stands for unknown values.
py::dict card_dict(const yoke_card_info &card)
{
    py::dict all;
    all["kind"] = yoke_card_kind_name(card.kind);
    all["usable"] = *card.reason == '\0';
    all["compute_capability"] =
        card.cc_major < 0 ? py::object(py::none()) : py::make_tuple(card.cc_major, card.cc_minor);
    py::list throttle;
    for (const auto &one : yoke_throttle_names)
        if (one.name && (card.throttle & one.bit)) throttle.append(one.name);
    all["throttle"] = throttle;
#define CARD_TEXT(field) all[#field] = text_of(card.field);
#define CARD_INT(field) all[#field] = known_int(card.field);
#define CARD_YES(field) all[#field] = truth(card.field);
#define CARD_REAL(field) all[#field] = known(card.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

py::list cards_of(yoke_inventory *inventory)
{
    py::list cards;
    for (int32_t i = 0; i < yoke_inventory_count(inventory); i++) {
        const auto info = filled<yoke_card_info>(yoke_inventory_card, inventory, i);
        py::dict card = card_dict(info);
        py::list processes, links;
        for (int32_t p = 0; p < info.process_count; p++)
            processes.append(
                process_dict(filled<yoke_card_process>(yoke_inventory_process, inventory, i, p)));
        for (int32_t other = 0; other < yoke_inventory_count(inventory); other++)
            links.append(
                link_dict(filled<yoke_card_link>(yoke_inventory_link, inventory, i, other)));
        card["processes"] = processes;
        card["links"] = links;
        cards.append(card);
    }
    return cards;
}

py::list networks_of(yoke_inventory *inventory)
{
    py::list networks;
    for (int32_t i = 0; i < yoke_inventory_network_count(inventory); i++) {
        yoke_network_card network{};
        network.struct_size = sizeof network;
        check(yoke_inventory_network(inventory, i, -1, &network, nullptr));
        networks.append(network_dict(network));
    }
    return networks;
}

py::dict take_inventory()
{
    const Inventory inventory = take();
    py::dict facts, all;
    for (const char *const *key = yoke_fact_keys; *key; key++) {
        const char *text = "";
        check(yoke_inventory_fact(inventory.get(), *key, &text));
        facts[*key] = text_of(text);
    }
    all["cards"] = cards_of(inventory.get());
    all["networks"] = networks_of(inventory.get());
    all["facts"] = facts;
    all["topology"] = text_of(yoke_inventory_topology(inventory.get()));
    return all;
}

py::dict entry_dict(const yoke_catalog_card &entry)
{
    py::dict all;
    all["name"] = entry.name;
    all["match"] = entry.match;
    all["memory"] = entry.memory;
    all["memory_bandwidth"] = entry.memory_bandwidth;
    all["multiprocessors"] = entry.multiprocessors;
    all["compute_capability"] = py::make_tuple(entry.cc_major, entry.cc_minor);
    all["f64_rate"] = entry.f64_rate;
    all["f32_rate"] = entry.f32_rate;
    all["tf32_rate"] = entry.tf32_rate;
    all["f16_rate"] = entry.f16_rate;
    all["bf16_rate"] = entry.bf16_rate;
    all["f8_rate"] = entry.f8_rate;
    all["i8_rate"] = entry.i8_rate;
    all["power"] = entry.power;
    all["nvlink_bandwidth"] = entry.nvlink_bandwidth;
    all["link_generation"] = entry.link_generation;
    all["link_width"] = entry.link_width;
    all["source"] = entry.source;
    return all;
}

py::list catalog()
{
    py::list all;
    for (int32_t i = 0; i < yoke_catalog_count(); i++)
        all.append(entry_dict(filled<yoke_catalog_card>(yoke_catalog_get, i)));
    return all;
}

py::object catalog_find(const py::object &name, const py::object &memory)
{
    const char *text = nullptr;
    require(to_text(name.ptr(), {"catalog_find", "name"}, &text));
    const int32_t index = yoke_catalog_find(text, need_int(memory, "catalog_find", "memory"));
    if (index < 0) return py::none();
    return entry_dict(filled<yoke_catalog_card>(yoke_catalog_get, index));
}

}  // namespace

void bind_inventory(py::module_ &module)
{
    module.def("_inventory", take_inventory);
    module.def("_catalog", catalog);
    module.def("_catalog_find", catalog_find);
}

}  // namespace yoke_python
