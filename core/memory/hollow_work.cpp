#include "core/memory/hollow_work.h"

#include <algorithm>

namespace yoke {

namespace {

template <class T>
T *find(const std::vector<std::unique_ptr<T>> &all, const void *wanted)
{
    for (const auto &each : all)
        if (each.get() == wanted) return each.get();
    return nullptr;
}

template <class T>
bool drop(std::vector<std::unique_ptr<T>> &all, const void *gone)
{
    return std::erase_if(all, [gone](const auto &each) { return each.get() == gone; }) > 0;
}

}  // namespace

void *HollowWork::make_stream()
{
    return streams_.emplace_back(std::make_unique<Stream>()).get();
}

void *HollowWork::make_event()
{
    return events_.emplace_back(std::make_unique<Event>()).get();
}

bool HollowWork::drop_stream(void *stream)
{
    return drop(streams_, stream);
}

bool HollowWork::drop_event(void *event)
{
    return drop(events_, event);
}

bool HollowWork::has_stream(const void *stream) const
{
    return find_stream(stream) != nullptr;
}

bool HollowWork::has_event(const void *event) const
{
    return find_event(event) != nullptr;
}

const HollowWork::Stream *HollowWork::find_stream(const void *stream) const
{
    return stream ? find(streams_, stream) : &default_;
}

HollowWork::Stream *HollowWork::find_stream(const void *stream)
{
    return stream ? find(streams_, stream) : &default_;
}

const HollowWork::Event *HollowWork::find_event(const void *event) const
{
    return find(events_, event);
}

HollowWork::Event *HollowWork::find_event(const void *event)
{
    return find(events_, event);
}

void HollowWork::give(void *stream)
{
    find_stream(stream)->steps.push_back({Step::kWork, nullptr});
}

void HollowWork::record(void *event, void *stream)
{
    Event &recorded = *find_event(event);
    recorded.last = std::make_shared<Mark>();
    Stream &on = *find_stream(stream);
    if (on.steps.empty())
        recorded.last->is_reached = true;
    else
        on.steps.push_back({Step::kRecord, recorded.last});
}

void HollowWork::wait(void *event, void *stream)
{
    const MarkRef &last = find_event(event)->last;
    if (last && !last->is_reached) find_stream(stream)->steps.push_back({Step::kWait, last});
}

bool HollowWork::is_idle(const void *stream) const
{
    return find_stream(stream)->steps.empty();
}

bool HollowWork::is_idle() const
{
    return default_.steps.empty() &&
           std::ranges::all_of(streams_, [](const auto &each) { return each->steps.empty(); });
}

bool HollowWork::is_reached(const void *event) const
{
    const MarkRef &last = find_event(event)->last;
    return !last || last->is_reached;
}

bool HollowWork::run_step_of(Stream &stream)
{
    if (stream.steps.empty()) return false;
    const Step &next = stream.steps.front();
    if (next.kind == Step::kWait && !next.mark->is_reached) return false;
    if (next.kind == Step::kRecord) next.mark->is_reached = true;
    stream.steps.pop_front();
    return true;
}

bool HollowWork::run_step(void *stream)
{
    return run_step_of(*find_stream(stream));
}

// Runs a step of each stream able to go on; returns whether any step has run. A wait names an earlier record, so some
// stream with steps can always go on.
bool HollowWork::run_round()
{
    bool has_run = run_step_of(default_);
    for (const auto &each : streams_) has_run |= run_step_of(*each);
    return has_run;
}

void HollowWork::finish_stream(void *stream)
{
    Stream &wanted = *find_stream(stream);
    while (!wanted.steps.empty())
        if (!run_step_of(wanted)) run_round();
}

void HollowWork::finish_event(const void *event)
{
    while (!is_reached(event)) run_round();
}

void HollowWork::finish()
{
    while (run_round()) {
    }
}

std::vector<void *> HollowWork::streams() const
{
    std::vector<void *> all{nullptr};
    for (const auto &each : streams_) all.push_back(each.get());
    return all;
}

}  // namespace yoke
