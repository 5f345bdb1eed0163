// The functions of yoke/state.h that deal with files.
#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/base/text.h"
#include "core/base/work.h"
#include "core/state/load.h"
#include "core/state/safetensors.h"
#include "core/state/save.h"
#include "yoke/state.h"

using namespace yoke;
using namespace yoke::capi;

yoke_status yoke_save(const char *path, yoke_state *state, const yoke_save_options *options,
                      yoke_work **out)
{
    constexpr const char *call = "yoke_save";
    return guard(call, [&] {
        if (out) *out = nullptr;
        const std::string file = &need(path, call, "path");
        const State &root = need(state, call, "state");
        SaveOptions wanted;
        if (options) {
            const yoke_save_options given = read_struct(options, call, "options");
            wanted.is_blocking = !given.non_blocking;
            if (given.metadata)
                wanted.metadata = object_of(given.metadata, call, "options.metadata");
            if (given.max_shard)
                wanted.max_shard = read_max_shard(given.max_shard, short_name(call));
        }
        Ref<Work> work = save_state(file, root, wanted, short_name(call));
        if (out) *out = hand_out<yoke_work>(std::move(work));
    });
}

namespace {

LoadOptions load_options(const yoke_load_options *given, const char *call)
{
    LoadOptions options;
    if (!given) return options;
    const yoke_load_options it = read_struct(given, call, "options");
    options.mmap = !it.copy;
    options.dtype = it.dtype;
    if (it.device) options.device = object_of(it.device, call, "options.device");
    if (!it.prefix && !it.wanted) return options;
    options.wanted = [prefix = std::string(it.prefix ? it.prefix : ""), wanted = it.wanted,
                      user = it.user, call](std::string_view name) {
        if (!name.starts_with(prefix)) return false;
        if (wanted && name.find('\0') != std::string_view::npos)
            fail(
                YOKE_E_CHECKPOINT,
                "%s: the name of tensor '%s' has a NUL, so no function can receive it; load by a prefix, or load all tensors",
                short_name(call), shown_name(name).c_str());
        return !wanted || wanted(user, std::string(name).c_str()) != 0;
    };
    return options;
}

}  // namespace

yoke_status yoke_load(const char *path, const yoke_load_options *options, yoke_state **out)
{
    constexpr const char *call = "yoke_load";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        const std::string file = &need(path, call, "path");
        place =
            hand_out<yoke_state>(load_state(file, load_options(options, call), short_name(call)));
    });
}

yoke_status yoke_load_info(const char *path, yoke_state **out)
{
    constexpr const char *call = "yoke_load_info";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        place = hand_out<yoke_state>(load_info(&need(path, call, "path"), short_name(call)));
    });
}
