// storage.cpp: storage functions for pickling: the begin of a tensor in its storage, and other views of the storage.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"

namespace yoke_python {
namespace {

py::object view_storage(const py::object &x, const py::object &dtype, const py::object &shape,
                        const py::object &strides, const py::object &offset)
{
    constexpr const char *call = "_view_storage";
    yoke_dtype kind = YOKE_NONE;
    std::vector<int64_t> sizes, steps;
    require(to_dtype(dtype.ptr(), {call, "dtype"}, &kind) &&
            to_ints(shape.ptr(), {call, "shape"}, &sizes) &&
            (strides.is_none() || to_ints(strides.ptr(), {call, "strides"}, &steps)));
    if (!strides.is_none() && steps.size() != sizes.size())
        require(raise_error(YOKE_E_VALUE, call,
                            "there are %zu strides for %zu axes; give one for each axis",
                            steps.size(), sizes.size()) != nullptr);
    const int64_t first = need_int(offset, call, "offset");
    yoke_tensor *out = nullptr;
    check(yoke_tensor_view_storage(need_tensor(x, call, "x"), kind, sizes.data(),
                                   strides.is_none() ? nullptr : steps.data(),
                                   static_cast<int64_t>(sizes.size()), first, &out));
    return taken(wrap_tensor(out));
}

}  // namespace

void bind_storage(py::module_ &module)
{
    module.def("_view_storage", view_storage);
    module.def("_storage_offset", [](const py::object &x) {
        return yoke_tensor_storage_offset(need_tensor(x, "_storage_offset", "x"));
    });
}

}  // namespace yoke_python
