// let_go.h: the thread that lets go of memory which calls on devices used, one for the process, made at first need.
//
// The end of memory of the host program waits for streams, and may run code of the host program. If the group's thread
// or the watch thread did that, a stream that hangs would keep them from finding out why.
#pragma once

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

#include <vector>

namespace yoke {

// Lets go of the storages, once the fence is reached; null waits for nothing. Memory behind a fence that is never
// reached stays for the life of the process, as does all if the system gives no thread.
void let_go_of(std::vector<Ref<Storage>> storages, Ref<Fence> behind) noexcept;

// Makes the thread, which `let_go_of` would make at its first need.
void begin_letting_go() noexcept;

// Ends the thread at the exit of the process. It waits for 0.1 s.
void stop_letting_go() noexcept;

}  // namespace yoke
