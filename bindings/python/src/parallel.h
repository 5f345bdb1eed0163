// parallel.h: reducers of gradients, of yoke/parallel.h; yoke/_parallel.py gives them their face.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include "yoke/comm.h"

namespace yoke_python {

// What DistributedDataParallel hands on, checked by it but for the tensors.
struct ReducerArguments {
    py::object params, names, buffers, buffer_names, bucket_mb, compression, hook;
};
py::object make_reducer(yoke_group *group, const ReducerArguments &arguments);

// `mine` is None, or what the others may get; the same of another rank comes back.
py::object end_join(yoke_group *group, const py::object &mine);
py::object regroup_reducer(yoke_group *group, const py::object &reducer, const py::object &mine);
void regroup_sampler(yoke_group *group, const py::object &sampler);

}  // namespace yoke_python
