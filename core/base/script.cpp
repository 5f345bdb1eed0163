#include "core/base/script.h"

#include "core/base/fork.h"
#include "core/base/host_hook.h"
#include "core/base/immortal.h"
#include "core/base/text.h"

#include <new>
#include <string_view>
#include <unordered_set>

namespace yoke {

namespace {

HostHook<StackFn> &stack_provider = immortal<HostHook<StackFn>>();

struct Place {
    std::string_view file, function;
    int32_t line;
    size_t hash() const noexcept
    {
        const std::hash<std::string_view> of;
        return (of(file) * 31 + of(function)) * 31 + static_cast<size_t>(line);
    }
};
bool is_of(const ScriptLine &known, const Place &place) noexcept
{
    return known.line == place.line && known.file == place.file && known.function == place.function;
}
struct Hash {
    using is_transparent = void;
    size_t operator()(const Place &place) const noexcept { return place.hash(); }
    size_t operator()(const ScriptLine &known) const noexcept
    {
        return Place{known.file, known.function, known.line}.hash();
    }
};
struct Same {
    using is_transparent = void;
    bool operator()(const ScriptLine &one, const ScriptLine &other) const noexcept
    {
        return is_of(one, {other.file, other.function, other.line});
    }
    bool operator()(const ScriptLine &one, const Place &place) const noexcept
    {
        return is_of(one, place);
    }
    bool operator()(const Place &place, const ScriptLine &one) const noexcept
    {
        return is_of(one, place);
    }
};

// Limit of kept places, since a script generating code has an endless number of places. Later places are not kept.
constexpr size_t kMostPlaces = 65536;
constexpr size_t kLongestFile = 4096, kLongestFunction = 256;

struct Places {
    Mutex mutex{LockRank::kOther};
    std::unordered_set<ScriptLine, Hash, Same> all;
};
Places &places = immortal<Places>();

const ScriptLine *kept(const Place &place)
{
    const std::lock_guard lock(places.mutex);
    if (const auto found = places.all.find(place); found != places.all.end()) return &*found;
    if (places.all.size() >= kMostPlaces) return nullptr;
    return &*places.all.insert({std::string(place.file), std::string(place.function), place.line})
                 .first;
}

// Returns the kept line of a place; null if no more places are kept. Looks first at the thread's last lines, since a
// loop asks for the same lines again.
const ScriptLine *find(const Place &place)
{
    constexpr size_t kLast = 32;
    thread_local const ScriptLine *last[kLast];
    const ScriptLine *&known = last[place.hash() % kLast];
    if (!known || !is_of(*known, place)) known = kept(place);
    return known;
}

std::string_view cut(const char *text, size_t most) noexcept
{
    std::string_view all = text ? text : "";
    if (all.size() <= most) return all;
    while (most > 0 && is_continuation(all[most])) --most;
    return all.substr(0, most);
}

}  // namespace

void set_stack_provider(StackFn fn, void *user, yoke_drop_fn drop)
{
    stack_provider.set(fn, user, drop);
}

const ScriptLine *script_line() noexcept
try {
    const char *file = nullptr, *function = nullptr;
    int32_t line = 0;
    if (!stack_provider.ask(&file, &line, &function)) return nullptr;
    return find({cut(file, kLongestFile), cut(function, kLongestFunction), line});
} catch (const std::bad_alloc &) {
    return nullptr;
}

std::string describe(const ScriptLine *line)
{
    return line ? describe_line(line->file, line->line, line->function) : "";
}

std::string describe_line(const std::string &file, int32_t line, const std::string &function)
{
    if (file.empty()) return function;
    return file + (line > 0 ? ":" + std::to_string(line) : "") +
           (function.empty() ? "" : " (" + function + ")");
}

}  // namespace yoke
