#include "tests/core/memory/ordering.h"

#include "core/base/error.h"

#include <algorithm>
#include <iterator>

namespace yoke::test {

void Ordering::join(Clock &to, const Clock &from)
{
    for (const auto &[stream, number] : from) to[stream] = std::max(to[stream], number);
}

Ordering::Clock &Ordering::clock_of(const void *stream)
{
    Clock &clock = streams_[stream];
    join(clock, host_);
    clock[stream] = given_[stream];
    return clock;
}

void Ordering::cut(uint64_t address)
{
    const auto behind = spans_.upper_bound(address);
    if (behind == spans_.begin()) return;
    const auto span = std::prev(behind);
    if (span->first == address || span->second.end <= address) return;
    Span rest = span->second;
    span->second.end = address;
    spans_.emplace(address, std::move(rest));
}

template <class F>
void Ordering::each_span(uint64_t address, uint64_t bytes, const F &f)
{
    const uint64_t end = address + bytes;
    cut(address);
    cut(end);
    for (uint64_t at = address; at < end;) {
        auto next = spans_.lower_bound(at);
        if (next == spans_.end() || next->first > at)
            next =
                spans_
                    .emplace(at, Span{next == spans_.end() ? end : std::min(end, next->first), {}})
                    .first;
        f(next->second);
        at = next->second.end;
    }
}

void Ordering::check(const Clock &clock, const std::string &who, uint64_t address, uint64_t bytes)
{
    each_span(address, bytes, [&](const Span &span) {
        for (const Use &use : span.uses) {
            const auto seen = clock.find(use.stream);
            if (seen != clock.end() && seen->second >= use.number) continue;
            races_.push_back(
                format("%s 0x%llx before work %llu of stream %p there is ordered ahead",
                       who.c_str(), static_cast<unsigned long long>(address),
                       static_cast<unsigned long long>(use.number), use.stream));
            return;
        }
    });
}

void Ordering::hand_out(const void *stream, uint64_t address, uint64_t bytes)
{
    check(clock_of(stream), format("stream %p is given", stream), address, bytes);
    each_span(address, bytes, [](Span &span) { span.uses.clear(); });
}

void Ordering::on_gone(uint64_t address, uint64_t bytes)
{
    check(host_, "the host gives back", address, bytes);
    each_span(address, bytes, [](Span &span) { span.uses.clear(); });
}

void Ordering::on_use(const void *stream, uint64_t address, uint64_t bytes)
{
    const uint64_t number = ++given_[stream];
    clock_of(stream);
    each_span(address, bytes, [&](Span &span) {
        std::erase_if(span.uses, [stream](const Use &use) { return use.stream == stream; });
        span.uses.push_back({stream, number});
    });
}

void Ordering::on_record(const void *event, const void *stream)
{
    events_[event] = clock_of(stream);
}

void Ordering::on_wait(const void *event, const void *stream)
{
    join(clock_of(stream), events_[event]);
}

void Ordering::on_seen_event(const void *event)
{
    join(host_, events_[event]);
}

void Ordering::on_seen_stream(const void *stream)
{
    join(host_, clock_of(stream));
}

void Ordering::on_seen_device()
{
    for (const auto &[stream, number] : given_) host_[stream] = number;
}

}  // namespace yoke::test
