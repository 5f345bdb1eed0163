// work.h: the Python class Work as a result and as an argument; state.cpp of the folder above binds it.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include "yoke/work.h"

namespace yoke_python {

// Work that outlasts its call.
class Work : public Bound {
public:
    explicit Work(yoke_work *handle) : handle_(handle) {}
    ~Work() { yoke_work_release(handle_); }
    Work(const Work &) = delete;
    Work &operator=(const Work &) = delete;

    void wait(const py::object &timeout);
    yoke_work *handle() const { return handle_; }
    bool done() const { return yoke_work_done(handle_) != 0; }
    py::tuple progress() const;

private:
    yoke_work *handle_;
};

// Returns a Work of Python, which owns the reference from now on.
py::object object_of(yoke_work *work);

// Returns the handle of a Work, borrowed. Throws TypeError for any other object.
yoke_work *work_in(py::handle work, const char *call, const char *argument);

}  // namespace yoke_python
