#include "core/parallel/tell_raised.h"

#include "core/base/error.h"

#include <exception>

namespace yoke {

void tell_raised(Group &group, const char *call) noexcept
{
    if (!group.is_here()) return;
    try {
        throw;
    } catch (const std::exception &error) {
        group.abort(format("its %s failed: ", call) + error.what());
    } catch (...) {
        group.abort(format("its %s failed", call));
    }
}

}  // namespace yoke
