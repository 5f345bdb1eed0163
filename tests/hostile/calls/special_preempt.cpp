// Watched signals: lists of names, and the numbers of watches, of which a few are kept.
#include "special.h"

#include <utility>

namespace hostile::special {

namespace {

const char *const *draw_names(Draw &d, int64_t *count)
{
    static const char *const kNames[] = {"TERM", "SIGUSR1", "USR2", "HUP", "KILL", "SEGV", "TREM"};
    constexpr uint64_t kCount = sizeof kNames / sizeof *kNames, kServing = 4;
    const bool some = !d.one_in(4);
    const auto length = static_cast<size_t>(d.below(4));
    const char **names = some ? d.array<const char *>(length) : nullptr;
    for (size_t i = 0; some && i < length; ++i)
        names[i] = d.one_in(32) ? nullptr : kNames[d.below(d.one_in(4) ? kCount : kServing)];
    *count = some ? static_cast<int64_t>(length) : 0;
    if (d.one_in(16)) *count = -1 - static_cast<int64_t>(d.below(1000));
    d.show("%s, %lld", some ? "names" : "NULL", static_cast<long long>(*count));
    return names;
}

// Draws the id of a kept watch, which `takes` removes from the world, or any number; 0 is the program's own watch.
int64_t draw_watch(Draw &d, bool takes)
{
    int64_t &place = d.world().watches[d.below(d.world().watches.size())];
    const int64_t id = d.one_in(4) ? d.int64() : place;
    if (takes && id == place) place = 0;
    d.show("%lld", static_cast<long long>(id));
    return id;
}

}  // namespace

void yoke_preempt_watch(Draw &d)
{
    int64_t count = 0;
    const char *const *names = draw_names(d, &count);
    d.announce();
    d.finish(::yoke_preempt_watch(names, count));
}

void yoke_preempt_add(Draw &d)
{
    int64_t &place = d.world().watches[d.below(d.world().watches.size())];
    int64_t count = 0, made = -1, *id = d.one_in(16) ? nullptr : &made;
    const char *const *names = draw_names(d, &count);
    d.show("%s", id ? "&id" : "NULL");
    d.announce();
    const yoke_status status = ::yoke_preempt_add(names, count, id);
    d.finish(status);
    if (status != YOKE_OK && made != -1) throw Defect("failed and changed its number");
    if (status == YOKE_OK) ::yoke_preempt_unwatch(std::exchange(place, made));
}

void yoke_preempt_signal(Draw &d)
{
    const int64_t id = draw_watch(d, false);
    d.announce();
    if (::yoke_preempt_signal(id)) throw Defect("told of a signal that nobody sent");
}

void yoke_preempt_resume(Draw &d)
{
    const int64_t id = draw_watch(d, false);
    d.announce();
    d.finish(::yoke_preempt_resume(id));
}

void yoke_preempt_clear(Draw &d)
{
    const int64_t id = draw_watch(d, false);
    d.announce();
    d.finish(::yoke_preempt_clear(id));
}

void yoke_preempt_unwatch(Draw &d)
{
    const int64_t id = draw_watch(d, true);
    d.announce();
    d.finish(::yoke_preempt_unwatch(id));
}

}  // namespace hostile::special
