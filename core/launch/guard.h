// guard.h: a small process beside this one, which outlives it: when this one has died, even by KILL, it ends the
// process groups of the ranks, with all that these have started in them, and removes a folder.
//
// It reads a pipe that only this process holds, and each rank until its exec. Each rank writes its number there before
// it becomes its program: so there is no moment at which it is not known. It is told of a group's end before the number
// may be another's. Its pipe may break: SIGPIPE is held meanwhile, see taken_signals.h.
#pragma once

#include "core/launch/child.h"

#include "core/store/socket.h"

namespace yoke {

class Guard {
public:
    // Without one, and a warning, where the system gives no process.
    explicit Guard(const std::string &folder);
    ~Guard();
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

    int note() const noexcept { return pipe_.fd(); }  // for ChildPlan
    // The group's number will be others'.
    void forget(pid_t group) noexcept;

private:
    void say(const char *line) noexcept;

    Socket pipe_;  // no child forked by the host keeps it open
    Child child_;
};

}  // namespace yoke
