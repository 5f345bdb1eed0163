// child.h: a program started as a child that leads a process group of its own.
//
// Made by vfork: nothing of the host's memory is copied, and none of its handlers for forks run. Every descriptor of
// ours is closed in the child at its exec.
#pragma once

#include "core/base/descriptor.h"

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace yoke {

// Of descriptors whose numbers are none of the standard streams', which are taken anew in a child.
struct Pipe {
    OwnedFile read = OwnedFile(), write = OwnedFile();
};
// Raises YOKE_E_IO.
Pipe make_pipe();
OwnedFile open_null();

struct ChildPlan {
    std::vector<std::string> command;
    std::vector<std::string> variables;
    int in = -1, out = -1, err = -1;  // descriptors that become 0, 1 and 2
    int note = -1;  // the child writes its number in a line to it before its exec; -1: nowhere
    bool is_guard =
        false;  // it outlives this process, in a session of its own without any file of the host's
    rlim_t files = 0;  // most open files; 0: as this process
};

struct Child {
    pid_t process = -1;
    int error = 0;  // errno of what kept the program from being started
    OwnedFile
        ended;  // can be read when it has ended; not is_open() where the kernel has no such thing
};

Child start_child(const ChildPlan &plan);
// Waits for its end.
void reap(pid_t process) noexcept;

}  // namespace yoke
