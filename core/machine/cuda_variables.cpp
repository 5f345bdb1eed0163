// The variables that CUDA reads once, with the values at that time: the implementation for visibility.h.
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/machine/visibility.h"

#include <cstdlib>
#include <mutex>
#include <utility>

namespace yoke {

namespace {

std::optional<std::string> variable(const char *name)
{
    const char *text = getenv(name);
    return text ? std::optional<std::string>(text) : std::nullopt;
}

CudaVariables variables_now()
{
    return {variable("CUDA_VISIBLE_DEVICES"), variable("CUDA_DEVICE_ORDER")};
}

struct Kept {
    Mutex mutex{LockRank::kOther};
    std::optional<CudaVariables> variables;
    bool warned[2] = {false, false};
};
Kept &kept = immortal<Kept>();

std::string quoted(const std::optional<std::string> &value)
{
    return value ? "'" + *value + "'" : "not set";
}

void warn_of(int which, const char *name, const std::optional<std::string> &was,
             const std::optional<std::string> &is)
{
    {
        const std::lock_guard lock(kept.mutex);
        if (was == is || std::exchange(kept.warned[which], true)) return;
    }
    log(LogLevel::kWarn,
        "%s is %s now, but CUDA has already read the variable; the value in effect is still %s",
        name, quoted(is).c_str(), quoted(was).c_str());
}

}  // namespace

void keep_cuda_variables()
{
    const std::lock_guard lock(kept.mutex);
    if (!kept.variables) kept.variables = variables_now();
}

CudaVariables cuda_variables()
{
    const std::lock_guard lock(kept.mutex);
    return kept.variables ? *kept.variables : variables_now();
}

void warn_of_late_cuda_variables()
{
    const CudaVariables was = cuda_variables(), is = variables_now();
    warn_of(0, "CUDA_VISIBLE_DEVICES", was.visible, is.visible);
    warn_of(1, "CUDA_DEVICE_ORDER", was.order, is.order);
}

}  // namespace yoke
