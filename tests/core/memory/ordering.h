// ordering.h: reports memory of a hollow device that is used, unmapped or freed before its last use is ordered ahead.
//
// Each stream and the host program have a vector clock. Work given to a stream has a number. A record keeps the clock
// of its stream; a wait or a look of the host program joins the kept clock. Work is ordered ahead of a point if the
// clock there has reached the work's number. The tests name the owner of a block. Within an ownership the user of the
// block orders the work.
#pragma once

#include "core/memory/hollow.h"

#include <map>
#include <string>
#include <vector>

namespace yoke::test {

class Ordering final : public HollowWatcher {
public:
    // Gives a block to work of `stream`. All earlier uses of its bytes must be ordered ahead of that stream.
    void hand_out(const void *stream, uint64_t address, uint64_t bytes);

    void on_gone(uint64_t address, uint64_t bytes) override;
    void on_use(const void *stream, uint64_t address, uint64_t bytes) override;
    void on_record(const void *event, const void *stream) override;
    void on_wait(const void *event, const void *stream) override;
    void on_seen_event(const void *event) override;
    void on_seen_stream(const void *stream) override;
    void on_seen_device() override;

    const std::vector<std::string> &races() const { return races_; }

private:
    using Clock =
        std::map<const void *, uint64_t>;  // the last number of each stream that is ordered ahead
    struct Use {
        const void *stream;
        uint64_t number;
    };
    // Uses of [address, end) since the last hand-out.
    struct Span {
        uint64_t end;
        std::vector<Use> uses;
    };
    using Spans = std::map<uint64_t, Span>;

    static void join(Clock &to, const Clock &from);
    // Makes spans begin and end there, and calls f(span) for those inside.
    template <class F>
    void each_span(uint64_t address, uint64_t bytes, const F &f);
    void cut(uint64_t address);
    void check(const Clock &clock, const std::string &who, uint64_t address, uint64_t bytes);
    // Returns the stream's clock. From now on the host program's clock is part of the stream's clock.
    Clock &clock_of(const void *stream);

    std::map<const void *, Clock> streams_;
    std::map<const void *, Clock> events_;
    std::map<const void *, uint64_t> given_;
    Clock host_;
    Spans spans_;
    std::vector<std::string> races_;
};

}  // namespace yoke::test
