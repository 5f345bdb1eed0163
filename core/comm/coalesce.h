// coalesce.h: calls of groups that a thread issues together, so that no send or receive among them waits for another.
//
// Between begin and end the thread's calls are kept: those that block return at once, and their tensors are not yet
// written. The outermost end issues them, of each group in their order. Scopes belong to the thread that began them.
#pragma once

#include "core/comm/group.h"

namespace yoke {

class Coalescing {
public:
    static bool is_open() noexcept;
    // Of a call that gives what it makes with other ranks: YOKE_E_STATE where it is open.
    static void check_closed(const char *call);
    static void begin();
    // Raises the first failure; where its wait is interrupted all goes on; YOKE_E_STATE without a begin, and where the
    // outermost one ends behind a drop.
    static void end(const char *call);
    // Ends the innermost one. All that is kept to the end of the outermost one is dropped; its works end as cancelled.
    static void drop(const char *call);

    // For groups, where it is open.
    static void add(Ref<Group> group, IssuedCall issued);
};

}  // namespace yoke
