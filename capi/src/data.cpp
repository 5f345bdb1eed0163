#include "yoke/data.h"

#include "capi/src/guard.h"
#include "core/select/select.h"
#include "core/state/idx.h"

using namespace yoke;
using namespace yoke::capi;

yoke_status yoke_read_idx(const char *path, yoke_tensor **out)
{
    constexpr const char *call = "yoke_read_idx";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(read_idx(&need(path, call, "path"), open_device("cpu")));
    });
}
