// guard.h: a small process that outlives the launcher. If the launcher dies, even by KILL, the guard kills the ranks'
// process groups, with all processes in these groups, and removes a folder.
//
// The guard reads a pipe. Only the launcher holds the pipe's other end, and each rank until its exec. Each rank
// writes its number to the pipe before its exec, so the guard knows every rank at any moment. The launcher reports
// the end of a group before the system can reuse the group's number. The pipe may break, so SIGPIPE is held back
// meanwhile: see taken_signals.h.
#pragma once

#include "core/launch/child.h"

#include "core/store/socket.h"

namespace yoke {

class Guard {
public:
    // Starts the guard, which removes `folder` if the launcher dies. If the system gives no process, logs a warning
    // and goes on without a guard.
    explicit Guard(const std::string &folder);
    ~Guard();
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

    int note() const noexcept { return pipe_.fd(); }  // for ChildPlan
    // Removes a rank's group from the guard's list, because the system may reuse the number.
    void forget(pid_t group) noexcept;

private:
    void say(const char *line) noexcept;

    Socket pipe_;  // never open in a child forked by the host program
    Child child_;
};

}  // namespace yoke
