// json.h: output for programs. Fields have the names and units of the public headers; unknown values are null.
#pragma once

#include "bindings/cli/src/handles.h"

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace yoke::cli {

using Json = nlohmann::ordered_json;

Json card_json(const yoke_card_info &card);
Json link_json(const yoke_card_link &link);
Json machine_json(yoke_inventory *inventory);  // facts, cards with their processes, networks
Json catalog_json(const yoke_catalog_card &entry);

Json tree_json(yoke_state *node);  // without tensors

// Prints a value to stdout, with an indent and a final newline. Text that is not UTF-8 is replaced, never refused.
void print_json(const Json &value);

}  // namespace yoke::cli
