// group.h: the Python class _Group as an argument; comm.cpp and parallel.cpp of the folder above bind it.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include "yoke/comm.h"

namespace yoke_python {

class Group : public Bound {
public:
    explicit Group(yoke_group *handle) : handle_(handle) {}
    ~Group()
    {
        const ReleaseGil release;  // waits for begun calls
        yoke_group_release(handle_);
    }
    Group(const Group &) = delete;
    Group &operator=(const Group &) = delete;

    yoke_group *handle() const { return handle_; }

private:
    yoke_group *const handle_;
};

}  // namespace yoke_python
