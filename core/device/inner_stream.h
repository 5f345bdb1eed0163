// inner_stream.h: streams on which the core itself works, and which no script can let go of: they do not keep a kind of
// devices from being disabled.
#pragma once

#include "core/device/stream.h"

namespace yoke {

// As make_stream.
Ref<Stream> make_inner_stream(Device &device);

// Scope in which a stream is the calling thread's current one.
class OnStream {
public:
    explicit OnStream(Stream &stream) : before_(current_stream(*stream.lane.device))
    {
        set_current_stream(stream);
    }
    // Also where the device cannot be used any more.
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
