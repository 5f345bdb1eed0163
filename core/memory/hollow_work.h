// hollow_work.h: streams and events of a hollow device. Work is a number of steps. A benchmark runs all steps at
// once, a test in a chosen order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace yoke {

class HollowWork {
public:
    // Make a stream and an event, and return their handles. The default stream is nullptr.
    void *make_stream();
    void *make_event();
    // Drop a stream or an event, or find out whether it is alive. All return false for a handle that is not alive.
    bool drop_stream(void *stream);
    bool drop_event(void *event);
    bool has_stream(const void *stream) const;
    bool has_event(const void *event) const;

    // Add a step to the end of a stream: work, a record of the event, or a wait for the event's last record.
    void give(void *stream);
    void record(void *event, void *stream);
    void wait(void *event, void *stream);

    bool is_idle(const void *stream) const;
    bool is_idle() const;
    // Returns whether the event's last record is reached; true for an event that was never recorded.
    bool is_reached(const void *event) const;

    // Runs the next step of a stream. Returns false if there is none, or if the step waits for an event.
    bool run_step(void *stream);
    // Run the steps that must end before a stream is idle, an event is reached, or all streams are idle.
    void finish_stream(void *stream);
    void finish_event(const void *event);
    void finish();

    // Returns every stream that is alive, the default stream first.
    std::vector<void *> streams() const;

private:
    // Record of an event. Waits name the record and not the event, since an event may be recorded again.
    struct Mark {
        bool is_reached = false;
    };
    using MarkRef = std::shared_ptr<Mark>;
    struct Event {
        MarkRef last;  // null: never recorded
    };
    struct Step {
        enum Kind { kWork, kRecord, kWait } kind;
        MarkRef mark;
    };
    struct Stream {
        std::deque<Step> steps;
    };
    Stream *find_stream(const void *stream);
    const Stream *find_stream(const void *stream) const;
    Event *find_event(const void *event);
    const Event *find_event(const void *event) const;
    bool run_step_of(Stream &stream);
    bool run_round();

    Stream default_;
    std::vector<std::unique_ptr<Stream>> streams_;
    std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace yoke
