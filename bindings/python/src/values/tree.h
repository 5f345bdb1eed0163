// tree.h: Python's values as a tree of the C API (yoke/state.h), and back.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include "yoke/state.h"

#include <memory>

namespace yoke_python {

struct ReleaseState {
    void operator()(yoke_state *state) const { yoke_state_release(state); }
};
using StateRef = std::unique_ptr<yoke_state, ReleaseState>;

// Returns the tree of a value: None, bools, ints, floats, strings, tensors, lists, tuples, dicts, and the
// state_dict() of any other object. Throws TypeError and ValueError with the place in `value`: "save():
// state['net'][0] is a set; …".
StateRef state_of(py::handle value, const char *call, const char *argument);
// Returns the value of a tree; a tensor at two places is a single object.
py::object value_of(yoke_state *state);

// Returns an object's state_dict(), by the function of its kind. load_object_state() does the same for
// load_state_dict().
template <class Handle>
py::object object_state(Handle *object, yoke_status (*ask)(Handle *, yoke_state **))
{
    yoke_state *state = nullptr;
    const yoke_status status = ask(object, &state);
    const StateRef held(state);
    check(status);
    return value_of(state);
}
template <class Handle>
void load_object_state(Handle *object, const py::object &state,
                       yoke_status (*load)(Handle *, yoke_state *))
{
    const StateRef held = state_of(state, "load_state_dict", "state_dict");
    check(with_relief([&] { return load(object, held.get()); }));
}

}  // namespace yoke_python
