#include "core/base/config.h"

#include "core/base/config_readers.h"

#include "core/base/error.h"
#include "core/base/foreign.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>

namespace yoke {

namespace {

// A check returns what is allowed, or nullptr if the value is.
using Check = const char *(*)(std::string_view value);

template <class... Words>
bool is_one_of(std::string_view value, Words... words)
{
    return ((value == words) || ...);
}

const char *check_flag(std::string_view value)
{
    return is_one_of(value, "0", "1") ? nullptr : "0 or 1";
}
const char *check_level(std::string_view value)
{
    return is_one_of(value, "error", "warn", "info", "debug") ? nullptr
                                                              : "error, warn, info or debug";
}
const char *check_isa(std::string_view value)
{
    return is_one_of(value, "base", "v3", "v4") ? nullptr : "base, v3 or v4";
}
const char *check_threads(std::string_view value)
{
    const int threads = parsed<int>(value).value_or(0);
    return threads > 0 && threads <= 1024 ? nullptr : "a whole number from 1 to 1024";
}
const char *check_seed(std::string_view value)
{
    return parsed<uint64_t>(value) ? nullptr : "a whole number";
}
const char *check_count(std::string_view value)
{
    const bool good = parsed<int32_t>(value).value_or(-1) >= 0;
    return good ? nullptr : "a whole number from 0 (all) to 2147483647";
}
const char *check_bytes(std::string_view value)
{
    const bool good = parsed<int64_t>(value).value_or(-1) >= 0;
    return good ? nullptr : "bytes, a whole number from 0 to 9223372036854775807";
}
const char *check_seconds(std::string_view value)
{
    const double seconds = parsed<double>(value).value_or(0);
    const bool good = seconds > 0 && seconds <= 3600;
    return good ? nullptr : "seconds, more than 0 and at most 3600, like 5 or 0.5";
}
const char *check_silence(std::string_view value)
{
    const double seconds = parsed<double>(value).value_or(-1);
    const bool good = seconds >= 0 && seconds <= 86400;
    return good ? nullptr : "seconds from 0 (never) to 86400, like 30 or 0.5";
}
const char *check_kinds(std::string_view value)
{
    std::vector<std::string> kinds = split_list(value);
    std::sort(kinds.begin(), kinds.end());
    const bool repeated = std::adjacent_find(kinds.begin(), kinds.end()) != kinds.end();
    return repeated || kinds.front().empty()
               ? "kinds of devices separated by commas, each once, like cuda,cpu"
               : nullptr;
}
const char *check_folder(std::string_view value)
{
    // With a relative path, processes in different folders would use different lock folders, and miss each other's
    // leases.
    return value.substr(0, 1) == "/" ? nullptr : "an absolute path, like /run/lock/yoke";
}
const char *check_any(std::string_view)
{
    return nullptr;  // its reader knows more than could be checked here
}

struct Key {
    const char *name;
    Check check;
    const char *otherwise;  // default value; null if other code decides
};
constexpr Key kKeys[] = {
    {"YOKE_PLATFORMS", check_kinds, nullptr},
    {"YOKE_DEVICE", check_any, nullptr},
    {"YOKE_NO_CACHING", check_flag, "0"},
    {"YOKE_ALLOC_CONF", check_any, nullptr},
    {"YOKE_CHECKS", check_flag, "0"},
    {"YOKE_NUM_THREADS", check_threads, nullptr},
    {"YOKE_LOG", check_level, nullptr},
    {"YOKE_LEASE_DIR", check_folder, nullptr},
    {"YOKE_CUDA_LIB_PATH", check_any, nullptr},
    {"YOKE_NO_PEER_ACCESS", check_flag, "0"},
    {"YOKE_SYSROOT", check_any, nullptr},
    {"YOKE_NVML_PATH", check_any, nullptr},
    {"YOKE_NVML_TIMEOUT", check_seconds, "5"},
    {"YOKE_CPU_ISA", check_isa, nullptr},
    {"YOKE_ALLOW_TF32", check_flag, "0"},
    {"YOKE_DETERMINISTIC_ALGORITHMS", check_flag, "0"},
    {"YOKE_BUDGET_TIMES", check_seed, nullptr},
    {"YOKE_CUBLASLT_AUTOTUNE", check_flag, "0"},
    {"YOKE_CUBLASLT_AUTOTUNE_FILE", check_any, nullptr},
    {"YOKE_CUBLASLT_FUSE_ACTIVATIONS", check_flag, "0"},
    {"YOKE_CUDNN_ENABLED", check_flag, "1"},
    {"YOKE_CUDNN_BENCHMARK", check_flag, "0"},
    {"YOKE_CUDNN_BENCHMARK_LIMIT", check_count, "10"},
    {"YOKE_CUDNN_BENCHMARK_FILE", check_any, nullptr},
    {"YOKE_CUDNN_DETERMINISTIC", check_flag, "0"},
    {"YOKE_CUDNN_WORKSPACE_LIMIT", check_bytes, "268435456"},
    {"YOKE_SOCKET_IFNAME", check_any, nullptr},
    {"YOKE_COMM_SILENCE", check_silence, "30"},
    {"YOKE_COMM_SHM", check_flag, "1"},
    {"YOKE_COMM_DUMP", check_folder, nullptr},
    {"YOKE_COMM_TEST_NODE", check_any, nullptr},
    {"YOKE_COMM_TEST_PIECE", check_any, nullptr},
};
constexpr size_t kKeyCount = sizeof kKeys / sizeof kKeys[0];

struct Setting {
    const char *value = nullptr;  // set by the program, or the variable's value at first use
    const char *origin = "";      // name of the variable
    bool set = false;             // by the program
    bool used = false;
    bool warned = false;
};

struct Settings {
    Mutex mutex{LockRank::kConfig};
    Setting entries[kKeyCount];
    std::deque<std::string> kept;  // every text ever handed out, once
    const char *keep(std::string_view text)
    {
        for (const std::string &known : kept)
            if (known == text) return known.c_str();
        return kept.emplace_back(text).c_str();
    }
};
Settings &known_settings = immortal<Settings>();

size_t index_of(std::string_view key) noexcept
{
    size_t i = 0;
    while (i < kKeyCount && key != kKeys[i].name) ++i;
    return i;
}

// Readers set while other parts of the library are loaded, perhaps before this part: so the array needs no
// constructor.
constinit ConfigReader readers[kKeyCount] = {};

size_t known_index(std::string_view key)
{
    const size_t i = index_of(key);
    if (i < kKeyCount) return i;
    std::vector<const char *> names;
    for (const Key &known : kKeys) names.push_back(known.name);
    const std::string text(key);
    if (const char *meant = nearest_word(key, names))
        fail(YOKE_E_VALUE, "there is no configuration key '%s'; did you mean '%s'?", text.c_str(),
             meant);
    fail(YOKE_E_VALUE, "there is no configuration key '%s'; the keys are %s", text.c_str(),
         joined(names).c_str());
}

[[noreturn]] void refuse(const char *name, std::string_view text, const char *allowed)
{
    fail(YOKE_E_VALUE, "%s is '%s'; it must be %s", name, std::string(text).c_str(), allowed);
}

void check_value(size_t i, std::string_view value)
{
    if (const char *allowed = kKeys[i].check(value)) refuse(kKeys[i].name, value, allowed);
}

// Value of a key in the environment: from the key's own variable, else from another library's variable of the same
// meaning.
struct Found {
    const char *name = "", *text = "";  // variable's name and text; "" if absent
    std::string value;
    const char *allowed = nullptr;  // where the text cannot be read

    bool is_there() const { return *name != 0; }
};

Found find_variable(size_t i)
{
    const char *text = getenv(kKeys[i].name);
    if (text && *text) return {kKeys[i].name, text, text, kKeys[i].check(text)};
    const std::optional<ForeignSetting> other = foreign_setting(kKeys[i].name);
    if (!other) return {};
    return {other->variable, other->text, other->value,
            other->allowed ? other->allowed : kKeys[i].check(other->value)};
}

// Returns a key's value, and fixes the value if `use`. Raises YOKE_E_VALUE for an unreadable value; without `strict`
// such a value counts as absent and stays unused.
const char *read_setting(size_t i, bool use, bool strict = true)
{
    Settings &all = known_settings;
    const std::lock_guard lock(all.mutex);
    Setting &entry = all.entries[i];
    if (entry.used || entry.set) {
        entry.used |= use;
        return entry.value;
    }
    const Found found = find_variable(i);
    if (found.allowed && !strict) return nullptr;
    if (found.allowed) refuse(found.name, found.text, found.allowed);
    const char *value = found.is_there() ? all.keep(found.value) : nullptr;
    if (use) {
        entry.value = value;
        entry.origin = found.name;
        entry.used = true;
    }
    return value;
}

}  // namespace

const char *config(std::string_view key)
{
    return read_setting(known_index(key), true);
}

const char *config_or_default(std::string_view key)
{
    const char *value = config(key);
    return value ? value : kKeys[known_index(key)].otherwise;
}

const char *peek_config(std::string_view key)
{
    return read_setting(known_index(key), false);
}

std::string config_origin(std::string_view key)
{
    const size_t i = known_index(key);
    const std::lock_guard lock(known_settings.mutex);
    const Setting &entry = known_settings.entries[i];
    if (entry.set) return entry.value ? "the program" : "";
    return entry.used ? entry.origin : find_variable(i).name;
}

const char *try_config(std::string_view key)
{
    const size_t i = index_of(key);
    if (i == kKeyCount) return nullptr;
    const char *value = read_setting(i, true, false);
    return value ? value : kKeys[i].otherwise;
}

void set_config(std::string_view key, std::string_view value)
{
    const size_t i = known_index(key);
    if (!value.empty()) check_value(i, value);
    Settings &all = known_settings;
    const std::lock_guard lock(all.mutex);
    Setting &entry = all.entries[i];
    if (entry.used)
        fail(
            YOKE_E_STATE,
            "%s cannot be set to '%s': it was already used, as %s%s%s; set it before its first use",
            kKeys[i].name, std::string(value).c_str(), entry.value ? "'" : "",
            entry.value ? entry.value : "not set", entry.value ? "'" : "");
    entry.value = value.empty() ? nullptr : all.keep(value);
    entry.set = true;
}

static void check_key(size_t i)
{
    const char *text = read_setting(i, false);
    if (text && readers[i]) readers[i](text);
}

void check_config()
{
    for (size_t i = 0; i < kKeyCount; ++i) check_key(i);
}

std::vector<ConfigProblem> config_problems()
{
    std::vector<ConfigProblem> problems;
    for (size_t i = 0; i < kKeyCount; ++i) try {
            check_key(i);
        } catch (const Error &error) {
            const std::string origin = config_origin(kKeys[i].name);
            problems.push_back({origin.empty() ? kKeys[i].name : origin, error.what()});
        }
    return problems;
}

// Returns the setting that was probably meant: the nearest, else the longest setting that begins the name, LOG for
// LOG_LEVEL.
static const char *meant_by(std::string_view name, const std::vector<const char *> &settings)
{
    if (const char *near = nearest_word(name, settings)) return near;
    std::string_view found;
    for (const std::string_view each : settings)
        if (each.size() > found.size() && name.substr(0, each.size()) == each &&
            name[each.size()] == '_')
            found = each;
    return found.data();
}

std::vector<std::pair<std::string, std::string>> misspelt_variables()
{
    constexpr std::string_view kPrefix = "YOKE_";
    // Without the prefix, since the prefix would make different short names look alike.
    std::vector<const char *> names;
    for (const Key &key : kKeys) names.push_back(key.name + kPrefix.size());
    std::vector<std::pair<std::string, std::string>> found;
    for (char **entry = environ; *entry; ++entry) {
        const std::string_view text(*entry);
        const std::string_view name = text.substr(0, text.find('='));
        if (name.substr(0, kPrefix.size()) != kPrefix || index_of(name) < kKeyCount) continue;
        if (const char *meant = meant_by(name.substr(kPrefix.size()), names))
            found.emplace_back(name, kPrefix.data() + std::string(meant));
    }
    std::sort(found.begin(), found.end());
    return found;
}

void warn_of_misspelt_variables()
{
    static std::atomic<bool> is_told{false};
    if (is_told.exchange(true)) return;
    for (const auto &[name, meant] : misspelt_variables())
        log(LogLevel::kWarn,
            "there is no setting %s, so the variable has no effect; did you mean %s?", name.c_str(),
            meant.c_str());
}

void set_config_reader(std::string_view key, ConfigReader reader) noexcept
{
    if (const size_t i = index_of(key); i < kKeyCount) readers[i] = reader;
}

void warn_of_late_changes()
{
    for (size_t i = 0; i < kKeyCount; ++i) {
        const Found now = find_variable(i);
        std::string was;
        {
            const std::lock_guard lock(known_settings.mutex);
            Setting &entry = known_settings.entries[i];
            const bool same = now.value == (entry.value ? entry.value : "");
            if (!entry.used || entry.set || entry.warned || same) continue;
            entry.warned = true;
            was = entry.value ? "'" + std::string(entry.value) + "'" : "not set";
        }
        log(LogLevel::kWarn,
            "%s was changed to '%s' after its first use; the value in effect is still %s",
            now.is_there() ? now.name : kKeys[i].name, now.text, was.c_str());
    }
}

bool Switch::read()
{
    const char *text = ask_(key_);
    int unread = kUnread;  // a value set meanwhile by the program stays
    state_.compare_exchange_strong(unread, text && std::string_view(text) == "1" ? kOn : kOff);
    return state_.load() == kOn;
}

int64_t Number::read()
{
    const char *text = config_or_default(key_);
    const int64_t value = text ? parsed<int64_t>(text).value_or(0) : 0;
    int64_t unread = kUnread;  // a value set meanwhile by the program stays
    value_.compare_exchange_strong(unread, value);
    return value_.load();
}

}  // namespace yoke
