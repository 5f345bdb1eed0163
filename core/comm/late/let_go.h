// let_go.h: the thread that releases memory of calls on devices. A process has a single such thread, made at first
// need.
//
// A release of the host program's memory waits for streams, and may run code of the host program. If the group's
// thread or the watch thread did this, a hanging stream would keep these threads from finding the cause.
#pragma once

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

#include <vector>

namespace yoke {

// Releases the storages, in the thread, after the fence is reached; a null fence needs no wait. Memory behind a fence
// that is never reached stays for the life of the process. All memory stays if the system gives no thread.
void let_go_of(std::vector<Ref<Storage>> storages, Ref<Fence> behind) noexcept;

// Makes the thread early. Without this call, the first `let_go_of` makes the thread.
void begin_letting_go() noexcept;

// Ends the thread at the exit of the process. Waits at most 0.1 s.
void stop_letting_go() noexcept;

}  // namespace yoke
