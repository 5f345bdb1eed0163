// coalesce.h: calls of groups that a thread issues together. So no send or receive among them waits for another.
//
// Between begin and end the thread's calls are kept: blocking calls return at once, before their tensors are written.
// The outermost end issues the calls, each group's in order. A scope belongs to the thread that began the scope.
#pragma once

#include "core/comm/group.h"

namespace yoke {

class Coalescing {
public:
    static bool is_open() noexcept;
    // Raises YOKE_E_STATE in an open scope. Calls with a result from other ranks need this check.
    static void check_closed(const char *call);
    static void begin();
    // Raises the first failure. If the wait is interrupted, all calls go on. Raises YOKE_E_STATE without a begin, or
    // if the outermost scope ends after a drop.
    static void end(const char *call);
    // Ends the innermost scope. All calls kept until the end of the outermost scope are dropped; their works end as
    // cancelled.
    static void drop(const char *call);

    // Adds a group's call to the open scope.
    static void add(Ref<Group> group, IssuedCall issued);
};

}  // namespace yoke
