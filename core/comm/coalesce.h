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
    // Raises YOKE_E_STATE in an open scope. Calls that return a result from other ranks make this check.
    static void check_closed(const char *call);
    static void begin();
    // Ends the innermost scope. At the end of the outermost scope, issues all kept calls, waits for the blocking
    // calls, and raises the first failure. If the wait is interrupted, all calls go on. Raises YOKE_E_STATE without a
    // begin, or if the outermost scope ends after a drop.
    static void end(const char *call);
    // Ends the innermost scope after an error. Drops all calls kept so far, and all calls kept until the end of the
    // outermost scope; their works end as cancelled. Raises YOKE_E_STATE without a begin.
    static void drop(const char *call);

    // Keeps a group's call for the end of the outermost scope.
    static void add(Ref<Group> group, IssuedCall issued);
};

}  // namespace yoke
