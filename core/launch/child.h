// child.h: a program started as a child in a process group of its own.
//
// vfork makes the child, so no memory of the host program is copied, and no fork handlers run. At its exec the child
// closes every descriptor of Yoke.
#pragma once

#include "core/base/descriptor.h"

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace yoke {

// Both ends of a pipe, with numbers above the standard streams', because a child sets those numbers anew.
struct Pipe {
    OwnedFile read = OwnedFile(), write = OwnedFile();
};
// Returns a new pipe, closed at exec. Raises YOKE_E_IO if the system gives no pipe.
Pipe make_pipe();
OwnedFile open_null();

struct ChildPlan {
    std::vector<std::string> command;
    std::vector<std::string> variables;
    int in = -1, out = -1, err = -1;  // descriptors that become 0, 1 and 2
    int note = -1;  // before its exec the child writes its number here as a line; -1: nowhere
    bool is_guard =
        false;  // outlives this process, in a new session and without files of the host program
    rlim_t files = 0;  // most open files; 0: as this process
};

struct Child {
    pid_t process = -1;
    int error = 0;  // errno of the failed start; 0: started
    OwnedFile
        ended;  // readable after the child's end; not is_open() if the kernel has no such file
};

// Starts the program and returns the child. If the start fails, the child's `error` is the errno.
Child start_child(const ChildPlan &plan);
// Waits for the end of a child, and releases its number.
void reap(pid_t process) noexcept;

}  // namespace yoke
