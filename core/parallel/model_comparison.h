// model_comparison.h: the comparison of modules and options before ranks reduce gradients together.
#pragma once

#include "core/base/error.h"
#include "core/parallel/compression.h"
#include "core/parallel/wrapped_module.h"

#include <cstdint>

namespace yoke {

// A refusal that all ranks raise alike. The group stays as it is, and may be given again.
class UnlikeModels final : public Error {
public:
    using Error::Error;
};

// The place of a regrouped module: the number of its former group, and the module's number there. A module that is
// wrapped anew has none.
struct FormerPlace {
    int64_t group = 0, module = 0;
};

// Raises UnlikeModels if the ranks have unlike modules, options or compressions, with the first that differs, if some
// ranks wrap and others regroup, or if a rank calls tell_refused. All other ranks call one of these two functions.
void compare_models(Group &group, const WrappedModule &module, const BucketSizes &sizes,
                    const Compression &compression, FormerPlace former);
// Tells the other ranks, which call compare_models, why this rank has no module. In a group of one does nothing.
void tell_refused(Group &group, const Error &why);

}  // namespace yoke
