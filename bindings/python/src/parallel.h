// parallel.h: reducers of gradients, of yoke/parallel.h; yoke/_parallel.py gives them their face.
#pragma once

#include "bind.h"

#include "yoke/comm.h"

namespace yoke_python {

// What DistributedDataParallel hands on, checked by it but for the tensors.
struct ReducerArguments {
    py::object params, names, buffers, buffer_names, bucket_mb, compression, hook;
};
py::object make_reducer(yoke_group *group, const ReducerArguments &arguments);

}  // namespace yoke_python
