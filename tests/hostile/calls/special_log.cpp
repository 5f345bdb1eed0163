// Callbacks of the log: the host program's own callback, and callbacks added beside it.
#include "special.h"

#include <cstring>
#include <utility>

namespace hostile::special {

namespace {

void ignore_line(void *, int32_t, const char *text)
{
    (void)std::strlen(text);
}

}  // namespace

void yoke_log_set_callback(Draw &d)
{
    const bool some = d.one_in(2), drops = d.one_in(2);
    d.show("%s, world, %s", some ? "ignore" : "NULL", drops ? "drop" : "NULL");
    d.announce();
    d.world().borrowed += drops;
    d.finish(::yoke_log_set_callback(some ? ignore_line : nullptr, &d.world(),
                                     drops ? give_back : nullptr));
}

void yoke_log_add_callback(Draw &d)
{
    int64_t &place = d.world().hearers[d.below(d.world().hearers.size())];
    const bool some = !d.one_in(8), drops = d.one_in(2);
    int64_t made = -1, *id = d.one_in(16) ? nullptr : &made;
    d.show("%s, world, %s, %s", some ? "ignore" : "NULL", drops ? "drop" : "NULL",
           id ? "&id" : "NULL");
    d.announce();
    d.world().borrowed += drops;
    const yoke_status status = ::yoke_log_add_callback(some ? ignore_line : nullptr, &d.world(),
                                                       drops ? give_back : nullptr, id);
    d.finish(status);
    if (status != YOKE_OK) d.world().borrowed -= drops;
    if (status != YOKE_OK && made != -1) throw Defect("failed and changed its number");
    if (status == YOKE_OK) ::yoke_log_remove_callback(std::exchange(place, made));
}

void yoke_log_remove_callback(Draw &d)
{
    int64_t &place = d.world().hearers[d.below(d.world().hearers.size())];
    const int64_t id = d.one_in(4) ? d.int64() : std::exchange(place, 0);
    d.show("%lld", static_cast<long long>(id));
    d.announce();
    d.finish(::yoke_log_remove_callback(id));
}

}  // namespace hostile::special
