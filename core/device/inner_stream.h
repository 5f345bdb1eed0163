// inner_stream.h: streams for the core's own work. Scripts cannot release such a stream, so it does not keep a kind
// of devices from being disabled.
#pragma once

#include "core/device/stream.h"

namespace yoke {

// Makes a stream as make_stream() does, with priority 0, and notes that the stream belongs to the core.
Ref<Stream> make_inner_stream(Device &device);

// Scope in which a stream is the calling thread's current stream.
class OnStream {
public:
    explicit OnStream(Stream &stream) : before_(current_stream(*stream.lane.device))
    {
        set_current_stream(stream);
    }
    // Restores the thread's former stream, even if the device cannot be used any more.
    ~OnStream()
    {
        Stream *&place = thread_state().streams[before_->lane.device->ordinal];
        place->release();
        place = before_->lane.id == 0 ? nullptr : before_.detach();
    }
    OnStream(const OnStream &) = delete;
    OnStream &operator=(const OnStream &) = delete;

private:
    Ref<Stream> before_;
};

}  // namespace yoke
