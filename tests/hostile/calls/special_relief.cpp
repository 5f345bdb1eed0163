// Functions that are asked when a device has no memory left.
#include "special.h"

#include <utility>

namespace hostile::special {

namespace {

using Add = yoke_status (*)(yoke_relief_fn, void *, yoke_drop_fn, int64_t *);
using Remove = yoke_status (*)(int64_t);

// Uses the library, and every other time reports success.
int32_t relieve(void *, yoke_device *device, int64_t bytes)
{
    int64_t allocated = 0;
    ::yoke_memory_allocated(device, &allocated);
    return static_cast<int32_t>((bytes / 64 + allocated / 64) % 2);
}

void add(Draw &d, int64_t &place, Add adds, Remove removes)
{
    const bool some = !d.one_in(8), drops = d.one_in(2);
    int64_t made = -1, *id = d.one_in(16) ? nullptr : &made;
    d.show("%s, world, %s, %s", some ? "relieve" : "NULL", drops ? "drop" : "NULL",
           id ? "&id" : "NULL");
    d.announce();
    d.world().borrowed += drops;
    const yoke_status status =
        adds(some ? relieve : nullptr, &d.world(), drops ? give_back : nullptr, id);
    d.finish(status);
    if (status != YOKE_OK) d.world().borrowed -= drops;
    if (status != YOKE_OK && made != -1) throw Defect("failed and changed its number");
    if (status == YOKE_OK) removes(std::exchange(place, made));
}

void remove(Draw &d, int64_t &place, Remove removes)
{
    const int64_t id = d.one_in(4) ? d.int64() : std::exchange(place, 0);
    d.show("%lld", static_cast<long long>(id));
    d.announce();
    d.finish(removes(id));
}

}  // namespace

void yoke_oom_details(Draw &d)
{
    d.announce();
    ::yoke_state *details = ::yoke_oom_details();
    if (details && ::yoke_state_count(details) < 10) throw Defect("numbers are missing");
    ::yoke_state_release(details);
    d.finish(YOKE_OK);
}

void yoke_on_out_of_memory(Draw &d)
{
    add(d, d.world().callback, ::yoke_on_out_of_memory, ::yoke_remove_on_out_of_memory);
}

void yoke_remove_on_out_of_memory(Draw &d)
{
    remove(d, d.world().callback, ::yoke_remove_on_out_of_memory);
}

void yoke_add_garbage_collector(Draw &d)
{
    add(d, d.world().collector, ::yoke_add_garbage_collector, ::yoke_remove_garbage_collector);
}

void yoke_remove_garbage_collector(Draw &d)
{
    remove(d, d.world().collector, ::yoke_remove_garbage_collector);
}

}  // namespace hostile::special
