// model_comparison.h: the comparison of modules and options before ranks reduce gradients together.
#pragma once

#include "core/base/error.h"
#include "core/parallel/compression.h"
#include "core/parallel/wrapped_module.h"

#include <cstdint>

namespace yoke {

// Refusal raised alike on all ranks. The group stays as it is, and the caller may give it again.
class UnlikeModels final : public Error {
public:
    using Error::Error;
};

// Number of a regrouped module's former group, and the module's number there. A newly wrapped module has 0.
struct FormerPlace {
    int64_t group = 0, module = 0;
};

// Options that determine order and kind of the calls. `flags` are for calls on 16-bit floats, as in yoke_collective.
struct ComparedOptions {
    const BucketSizes &sizes;
    const Compression &compression;
    uint32_t flags;
};

// Raises UnlikeModels with the first difference if the ranks have unlike modules or options. Raises it
// too if some ranks wrap and others regroup, or if a rank calls tell_refused. All other ranks must call this function
// or tell_refused.
void compare_models(Group &group, const WrappedModule &module, const ComparedOptions &options,
                    FormerPlace former);
// Sends the other ranks, which call compare_models, the reason why this rank has no module. Does nothing in a group
// of a single rank.
void tell_refused(Group &group, const Error &why);

}  // namespace yoke
