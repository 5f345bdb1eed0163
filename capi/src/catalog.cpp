#include "core/machine/catalog.h"

#include "capi/src/structs.h"
#include "yoke/inventory.h"

using namespace yoke;
using namespace yoke::capi;

int32_t yoke_catalog_count(void)
{
    return static_cast<int32_t>(catalog().size());
}

yoke_status yoke_catalog_get(int32_t index, yoke_catalog_card *card)
{
    constexpr const char *call = "yoke_catalog_get";
    return guard(call, [&] {
        need(card, call, "card");
        const auto all = catalog();
        if (index < 0 || static_cast<size_t>(index) >= all.size())
            fail(YOKE_E_INDEX,
                 "%s: argument 'index' is %d; the catalog has %zu cards, counted from 0",
                 short_name(call), index, all.size());
        write_struct(card, all[static_cast<size_t>(index)], call, "card");
    });
}

int32_t yoke_catalog_find(const char *name, int64_t memory)
{
    constexpr const char *call = "yoke_catalog_find";
    return guard_value(call, -1,
                       [&]() -> int32_t { return find_model(&need(name, call, "name"), memory); });
}
