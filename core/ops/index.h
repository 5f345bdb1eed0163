// index.h: checks that the ops with indices and masks share.
#pragma once

#include "core/ops/args.h"

#include <cstring>

namespace yoke {

class Plan;

// Raises YOKE_E_TYPE unless the mask is bool.
void check_mask(const yoke_tensor &mask, const char *call);

// Raises unless argument 'value' is a number that fits x's dtype, or a tensor without axes whose dtype does.
void check_lone_value(const yoke_tensor &x, const yoke_arg &value, const char *call);

// Raises YOKE_E_TYPE unless `other`, the argument `which`, has x's dtype.
void check_dtype_of_x(const yoke_tensor &x, const yoke_tensor &other, const char *which,
                      const char *call);

// Copies `other` if it begins at x's address: an op writing x by indices must not change its other tensors meanwhile.
void separate(Plan &plan, int arg, const yoke_tensor &x, const yoke_tensor &other);

// Raises YOKE_E_VALUE unless `index` has as many axes as `within` and is nowhere longer, except along `axis` (-1: no
// exception).
void check_index_shape(const yoke_tensor &index, const yoke_tensor &within, const char *which,
                       int axis, const char *call);

// Runs `part`, whose errors begin with the name of an op in `workers`, and names `call` in its place.
template <class Part>
auto named_as(const char *call, std::initializer_list<const char *> workers, const Part &part)
{
    try {
        return part();
    } catch (const Error &error) {
        const std::string text = error.what();
        for (const char *worker : workers)
            if (text.compare(0, strlen(worker), worker) == 0 &&
                text.compare(strlen(worker), 2, ": ") == 0)
                throw Error(error.status(), call + text.substr(strlen(worker)), error.native_code(),
                            error.device());
        throw;
    }
}

}  // namespace yoke
