#include "core/memory/alloc_conf.h"

#include "core/base/config.h"
#include "core/base/config_readers.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <mutex>
#include <vector>

namespace yoke {

namespace {

constexpr const char *kVariable = "YOKE_ALLOC_CONF";
constexpr const char *kFlag = "True or False";

bool *flag_of(AllocConf &conf, std::string_view key)
{
    return key == "expandable_segments" ? &conf.expandable_segments
           : key == "ask_fences"        ? &conf.ask_fences
                                        : nullptr;
}

// Writes the value of the key to conf and returns null. If the value is not allowed, returns the allowed values.
const char *read_value(AllocConf &conf, std::string_view key, std::string_view value)
{
    if (bool *flag = flag_of(conf, key)) {
        if (value != "True" && value != "False") return kFlag;
        *flag = value == "True";
        return nullptr;
    }
    const double threshold = parsed<double>(value).value_or(-1);
    if (!(threshold >= 0 && threshold < 1))
        return "0 (off) or a share of the device's memory below 1, such as 0.8";
    conf.garbage_collection_threshold = threshold == 0 ? 0 : threshold;  // not -0
    return nullptr;
}

constexpr const char *kKeys[] = {"expandable_segments", "garbage_collection_threshold",
                                 "ask_fences"};

[[noreturn]] void refuse_key(const char *call, const std::string &key)
{
    const std::vector<const char *> keys(std::begin(kKeys), std::end(kKeys));
    const char *meant = nearest_word(key, keys);
    fail(
        YOKE_E_VALUE,
        "%s: there is no setting '%s'%s%s%s; the settings are expandable_segments, garbage_collection_threshold and ask_fences, as key:value with commas between",
        call, key.c_str(), meant ? " (did you mean '" : "", meant ? meant : "", meant ? "'?)" : "");
}

// Returns conf with the settings named in the text. Raises YOKE_E_VALUE for an unknown or repeated key, and for a
// value that is not allowed.
AllocConf read(const char *call, AllocConf conf, std::string_view text)
{
    std::vector<std::string> seen;
    for (const std::string &item : split_list(text)) {
        if (item.empty()) continue;
        const size_t colon = item.find(':');
        const std::string key = item.substr(0, colon);
        if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys))
            refuse_key(call, key);
        if (std::find(seen.begin(), seen.end(), key) != seen.end())
            fail(YOKE_E_VALUE, "%s: setting '%s' is given twice; give it once", call, key.c_str());
        seen.push_back(key);
        const std::string value = colon == std::string::npos ? "" : item.substr(colon + 1);
        if (const char *allowed = read_value(conf, key, value))
            fail(YOKE_E_VALUE, "%s: setting '%s' is '%s'; it must be %s", call, key.c_str(),
                 value.c_str(), allowed);
    }
    return conf;
}

struct State {
    Mutex mutex{LockRank::kOther};
    AllocConf conf;
    bool is_read = false;
};
State &state = immortal<State>();

// Returns the name of the variable that was set, possibly PyTorch's variable.
std::string variable()
{
    const std::string origin = config_origin(kVariable);
    return origin.empty() ? kVariable : origin;
}

const bool is_hooked =
    (set_config_reader(kVariable,
                       [](std::string_view text) { read(variable().c_str(), AllocConf(), text); }),
     true);

// Takes the settings from the variable, at the first call only. The caller holds the lock.
void read_variable()
{
    if (state.is_read) return;
    if (const char *text = config(kVariable))
        state.conf = read(variable().c_str(), state.conf, text);
    state.is_read = true;
}

}  // namespace

AllocConf alloc_conf()
{
    const std::lock_guard lock(state.mutex);
    read_variable();
    return state.conf;
}

void set_alloc_conf(const char *call, std::string_view text)
{
    const std::lock_guard lock(state.mutex);
    read_variable();
    state.conf = read(call, state.conf, text);
}

std::string describe(const AllocConf &conf)
{
    const auto flag = [](bool on) { return on ? "True" : "False"; };
    char threshold[32] = {};
    std::to_chars(threshold, threshold + sizeof threshold - 1, conf.garbage_collection_threshold);
    return format("expandable_segments:%s,garbage_collection_threshold:%s,ask_fences:%s",
                  flag(conf.expandable_segments), threshold, flag(conf.ask_fences));
}

}  // namespace yoke
