// start_thread.h: the only place where the core makes threads.
#pragma once

#include "core/base/signals.h"

#include <exception>
#include <string>
#include <thread>
#include <utility>

namespace yoke {

// Starts a thread that takes no signal of the host program. Returns "", or the reason if the system refuses, as at
// the limit of `ulimit -u`; `thread` is unchanged then.
template <class F>
std::string start_thread(std::thread &thread, F run)
{
    try {
        const HostSignalsBlocked blocked;
        thread = std::thread(std::move(run));
        return {};
    } catch (const std::exception &error) {
        return error.what();
    }
}

// Starts a thread as start_thread() does, without a later join. Returns "", or the reason if the system refuses.
template <class F>
std::string start_detached_thread(F run)
{
    std::thread thread;
    std::string why = start_thread(thread, std::move(run));
    if (why.empty()) thread.detach();
    return why;
}

}  // namespace yoke
