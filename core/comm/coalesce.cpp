#include "core/comm/coalesce.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

struct Kept {
    Ref<Group> group;
    CallIssuer::Together together;
};

struct Scope {
    int depth = 0;
    bool is_dropped = false;  // an inner scope was dropped, so all calls are
    std::vector<Kept> kept;   // by group, in the order of their first calls

    ~Scope();  // drops the calls, because a thread may end in an open scope
};
thread_local Scope scope;

// Leaves a scope. Returns whether it was the outermost scope. Raises YOKE_E_STATE if the thread has no scope.
bool leave(const char *call)
{
    if (scope.depth == 0)
        fail(YOKE_E_STATE, "%s: this thread has no open coalesce; begin a coalesce first", call);
    return --scope.depth == 0;
}

void release(Kept &kept, std::exception_ptr failure) noexcept
{
    for (IssuedCall &one : kept.together.calls)
        if (one.work.present()) {
            one.work->hold(false);
            if (failure) one.work->finish(failure);
        }
}

bool has_late(const Kept &kept) noexcept
{
    return std::ranges::any_of(kept.together.calls,
                               [](const IssuedCall &each) { return each.late.present(); });
}

std::exception_ptr dropped()
{
    return std::make_exception_ptr(
        Error(YOKE_E_CANCELLED, "the calls of this coalesce were dropped before they were issued"));
}

Scope::~Scope()
try {
    for (Kept &each : kept) release(each, dropped());
} catch (const std::bad_alloc &) {  // the works stay unfinished; a wait raises YOKE_E_STATE
}

// Ends the works of calls that were not issued with the group's failure. Does nothing for issued calls, whose works
// report their own failures.
void tell_works(const CallIssuer::Together &kept) noexcept
{
    if (!kept.failure || kept.were_issued) return;
    for (const IssuedCall &one : kept.calls)
        if (one.work.present() && !one.work->is_done()) one.work->finish(kept.failure);
}

std::vector<Ref<Work>> issue(std::vector<Kept> &all)
{
    std::vector<CallIssuer::Together *> groups;
    for (Kept &each : all) groups.push_back(&each.together);
    return CallIssuer::issue_together(groups);
}

std::exception_ptr end_of(Work &work)
{
    try {
        work.wait(-1);
        return nullptr;
    } catch (const Interrupted &) {  // the other works are not waited for either
        throw;
    } catch (...) {
        return std::current_exception();
    }
}

}  // namespace

bool Coalescing::is_open() noexcept
{
    return scope.depth > 0;
}

void Coalescing::check_closed(const char *call)
{
    if (is_open())
        fail(
            YOKE_E_STATE,
            "%s: this call needs the other ranks at once, but this thread is in a coalesce, which issues its calls at its end; call it before or after the coalesce",
            call);
}

void Coalescing::begin()
{
    ++scope.depth;
}

void Coalescing::add(Ref<Group> group, IssuedCall issued)
{
    if (issued.work.present()) issued.work->hold(true);
    auto found = std::ranges::find_if(
        scope.kept, [&](const Kept &each) { return each.group.get() == group.get(); });
    if (found == scope.kept.end()) {
        CallIssuer &of = group->issuer();
        found = scope.kept.insert(found, {std::move(group), {&of, {}}});
    }
    found->together.calls.push_back(std::move(issued));
}

void Coalescing::end(const char *call)
{
    if (!leave(call)) return;
    std::vector<Kept> all = std::exchange(scope.kept, {});
    if (std::exchange(scope.is_dropped, false)) {
        for (Kept &each : all) release(each, dropped());
        fail(
            YOKE_E_STATE,
            "%s: an error left an inner scope, so no call of the coalesce is issued; let the error leave the outer scope too",
            call);
    }
    for (Kept &each : all)
        if (!has_late(each))
            release(each, nullptr);  // meanwhile the caller may wait for works in host memory
    const std::vector<Ref<Work>> awaited = issue(all);
    for (Kept &each : all) release(each, nullptr);
    std::exception_ptr first;
    const auto note = [&first](std::exception_ptr failure) {
        if (!first) first = std::move(failure);
    };
    for (const Kept &each : all) {
        tell_works(each.together);
        note(each.together.failure);
    }
    for (const Ref<Work> &each : awaited) note(end_of(*each));
    if (first) std::rethrow_exception(first);
}

void Coalescing::drop(const char *call)
{
    scope.is_dropped = !leave(call);
    std::vector<Kept> all = std::exchange(scope.kept, {});
    for (Kept &each : all) release(each, dropped());
}

}  // namespace yoke
