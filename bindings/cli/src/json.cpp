#include "bindings/cli/src/json.h"

#include "bindings/common/inventory_keys.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

Json known(double value)
{
    return std::isnan(value) ? Json() : Json(value);
}
Json known_int(int64_t value)
{
    return value < 0 ? Json() : Json(value);
}
Json truth(int32_t value)
{
    return value < 0 ? Json() : Json(value != 0);
}
Json text(const char *value)
{
    return *value ? Json(value) : Json();
}

Json capability(int32_t major, int32_t minor)
{
    return major < 0 ? Json() : Json(std::to_string(major) + "." + std::to_string(minor));
}

Json throttle_json(uint64_t bits)
{
    Json names = Json::array();
    for (const auto &one : yoke_throttle_names)
        if (one.name && (bits & one.bit)) names.push_back(one.name);
    return names;
}

Json network_json(const yoke_network_card &network)
{
    Json all;
#define NETWORK_TEXT(field) all[#field] = text(network.field);
#define NETWORK_INT(field) all[#field] = known_int(network.field);
#define NETWORK_YES(field) all[#field] = truth(network.field);
#define NETWORK_REAL(field) all[#field] = known(network.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

Json process_json(const yoke_card_process &process)
{
    Json all;
#define PROCESS_TEXT(field) all[#field] = text(process.field);
#define PROCESS_INT(field) all[#field] = known_int(process.field);
#define PROCESS_YES(field) all[#field] = truth(process.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

Json card_with_processes(yoke_inventory *inventory, const yoke_card_info &card)
{
    Json one = card_json(card);
    one["processes"] = Json::array();
    for (int32_t i = 0; i < card.process_count; ++i)
        one["processes"].push_back(
            process_json(get<yoke_card_process>(yoke_inventory_process, inventory, card.index, i)));
    return one;
}

Json entries_of(yoke_state *node, bool is_dict)
{
    Json all = is_dict ? Json::object() : Json::array();
    Json::object_t::Container pairs;  // keys are unique: a look-up of each would take long
    for (int64_t i = 0; i < yoke_state_count(node); ++i) {
        yoke_state_key key{};
        key.struct_size = sizeof key;
        const Tree entry = make<Tree>(yoke_state_entry, node, i, &key);
        if (is_dict)
            pairs.emplace_back(std::string(key.text, static_cast<size_t>(key.length)),
                               tree_json(entry.get()));
        else
            all.push_back(tree_json(entry.get()));
    }
    if (is_dict)
        static_cast<Json::object_t::Container &>(all.get_ref<Json::object_t &>()).swap(pairs);
    return all;
}

}  // namespace

Json tree_json(yoke_state *node)
{
    int32_t flag = 0;
    int64_t number = 0;
    double real = 0;
    const char *words = nullptr;
    switch (const int32_t kind = yoke_state_kind(node, "")) {
        case YOKE_STATE_BOOL:
            check(yoke_state_get_bool(node, "", &flag));
            return flag != 0;
        case YOKE_STATE_INT:
            check(yoke_state_get_int(node, "", &number));
            return number;
        case YOKE_STATE_FLOAT:
            check(yoke_state_get_float(node, "", &real));
            return real;
        case YOKE_STATE_STRING:
            check(yoke_state_get_string(node, "", &words, &number));
            return std::string(words, static_cast<size_t>(number));
        case YOKE_STATE_LIST:
        case YOKE_STATE_DICT:
            return entries_of(node, kind == YOKE_STATE_DICT);
        default:
            return nullptr;
    }
}

Json card_json(const yoke_card_info &card)
{
    Json all;
    all["kind"] = yoke_card_kind_name(card.kind);
    all["usable"] = *card.reason == '\0';
    all["compute_capability"] = capability(card.cc_major, card.cc_minor);
    all["throttle"] = throttle_json(card.throttle);
#define CARD_TEXT(field) all[#field] = text(card.field);
#define CARD_INT(field) all[#field] = known_int(card.field);
#define CARD_YES(field) all[#field] = truth(card.field);
#define CARD_REAL(field) all[#field] = known(card.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

Json link_json(const yoke_card_link &link)
{
    Json all;
#define LINK_TEXT(field) all[#field] = text(link.field);
#define LINK_INT(field) all[#field] = known_int(link.field);
#define LINK_YES(field) all[#field] = truth(link.field);
#include "bindings/common/inventory_fields.def"
    return all;
}

Json machine_json(yoke_inventory *inventory)
{
    Json facts = Json::object(), cards = Json::array(), networks = Json::array();
    for (const char *const *key = yoke_fact_keys; *key; ++key) {
        const char *fact = "";
        check(yoke_inventory_fact(inventory, *key, &fact));
        facts[*key] = text(fact);
    }
    for (const yoke_card_info &card : cards_of(inventory))
        cards.push_back(card_with_processes(inventory, card));
    for (int32_t i = 0; i < yoke_inventory_network_count(inventory); ++i) {
        yoke_network_card network{};
        network.struct_size = sizeof network;
        check(yoke_inventory_network(inventory, i, -1, &network, nullptr));
        networks.push_back(network_json(network));
    }
    return {{"facts", facts}, {"cards", cards}, {"networks", networks}};
}

Json catalog_json(const yoke_catalog_card &e)
{
    return {{"name", e.name},
            {"match", e.match},
            {"memory", e.memory},
            {"memory_bandwidth", e.memory_bandwidth},
            {"multiprocessors", e.multiprocessors},
            {"compute_capability", capability(e.cc_major, e.cc_minor)},
            {"f64_rate", e.f64_rate},
            {"f32_rate", e.f32_rate},
            {"tf32_rate", e.tf32_rate},
            {"f16_rate", e.f16_rate},
            {"bf16_rate", e.bf16_rate},
            {"f8_rate", e.f8_rate},
            {"i8_rate", e.i8_rate},
            {"power", e.power},
            {"nvlink_bandwidth", e.nvlink_bandwidth},
            {"link_generation", e.link_generation},
            {"link_width", e.link_width},
            {"source", e.source}};
}

void print_json(const Json &value)
{
    puts(value.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace yoke::cli
