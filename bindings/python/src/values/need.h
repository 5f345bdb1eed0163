// need.h: arguments of functions called by pybind11. Each function returns the value, or throws a Python error with
// the call and the argument.
#pragma once

#include "bindings/python/src/runtime/bind.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/tensor.h"

#include <vector>

namespace yoke_python {

inline yoke_tensor *need_tensor(py::handle value, const char *call, const char *argument)
{
    yoke_tensor *tensor = tensor_argument(value.ptr(), {call, argument});
    require(tensor != nullptr);
    return tensor;
}

inline yoke_device *need_device(py::handle value, const char *call)
{
    yoke_device *device = nullptr;
    require(to_device_or_current(value.ptr(), {call, "device"}, &device));
    return device;
}

inline int64_t need_int(py::handle value, const char *call, const char *argument)
{
    int64_t number = 0;
    require(to_int64(value.ptr(), {call, argument}, &number));
    return number;
}

inline double need_float(py::handle value, const char *call, const char *argument)
{
    double number = 0;
    require(to_double(value.ptr(), {call, argument}, &number));
    return number;
}

inline bool need_bool(py::handle value, const char *call, const char *argument)
{
    int32_t truth = 0;
    require(to_bool(value.ptr(), {call, argument}, &truth));
    return truth != 0;
}

// Returns a text, or null for None. Throws TypeError for any other value.
inline const char *need_text(py::handle value, const char *call, const char *argument)
{
    const char *text = nullptr;
    if (!value.is_none()) require(to_text(value.ptr(), {call, argument}, &text));
    return text;
}

// Returns a kind of devices. Raises TypeError for any value but a text.
inline const char *need_kind(const py::object &kind, const char *call)
{
    const char *text = need_text(kind, call, "kind");
    if (!text) require(raise_type({call, "kind"}, "a kind such as \"cuda\"", Py_None) != nullptr);
    return text;
}

// Returns the path of a str, bytes or os.PathLike, as bytes of the file system. Throws ValueError for a path with a
// NUL.
py::bytes need_path(py::handle value, const char *call, const char *argument);

// Sequence of tensors, held for as long as this object lives.
class TensorSequence {
public:
    TensorSequence(py::handle value, const char *call, const char *argument);
    ~TensorSequence();
    TensorSequence(const TensorSequence &) = delete;
    TensorSequence &operator=(const TensorSequence &) = delete;

    yoke_tensor *const *data() const { return tensors_.data(); }
    int64_t size() const { return static_cast<int64_t>(tensors_.size()); }

private:
    std::vector<yoke_tensor *> tensors_;
};

// Returns a list of handles and takes their references, even if it throws; NULL becomes None.
py::list wrap_all(const std::vector<yoke_tensor *> &tensors);

}  // namespace yoke_python
