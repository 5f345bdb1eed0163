#include "core/state/temporary.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/text.h"
#include "core/state/manifest.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>

namespace yoke {

namespace {

constexpr std::string_view kMark = ".yoke-", kTail = ".tmp";
// A name has 255 bytes: so many of the target's go into that of a temporary.
constexpr size_t kMostOfTarget = 200;
// Digits of RANDOM, and the first of them.
constexpr size_t kRandomDigits = 16, kFirstDigits = 8;

std::string beginning_for(std::string_view target)
{
    size_t length = std::min(target.size(), kMostOfTarget);
    while (length > 0 && length < target.size() && is_continuation(target[length])) --length;
    return "." + std::string(target.substr(0, length)) + std::string(kMark);
}

// Names of temporaries in use by this process. The process number alone is not enough: in containers, each program
// may start with the same process number.
struct InUse {
    Mutex mutex{LockRank::kOther};
    std::set<std::string, std::less<>> names;
    uint64_t made = 0;
};

InUse &in_use = immortal<InUse>();

std::string new_name(std::string_view target)
{
    const std::lock_guard lock(in_use.mutex);
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    // Differs for each temporary of a process, and between processes with the same number.
    const uint64_t random =
        (static_cast<uint64_t>(now) ^ (++in_use.made << 48)) * 0x9e3779b97f4a7c15ull;
    std::string name = beginning_for(target) + std::to_string(getpid()) + '-';
    for (size_t i = kRandomDigits; i-- > 0;) name += "0123456789abcdef"[random >> (4 * i) & 15];
    name += kTail;
    in_use.names.insert(name);
    return name;
}

bool is_mine(std::string_view name)
{
    const std::lock_guard lock(in_use.mutex);
    return in_use.names.contains(name);
}

bool is_alive(pid_t process)
{
    return file_calls().kill(process, 0) == 0 || errno != ESRCH;
}

// Returns the process of a name `.TARGET.yoke-PID-RANDOM.tmp`, or nullopt for other names. An empty target matches
// any target.
std::optional<pid_t> writer_of(std::string_view name, std::string_view target)
{
    const size_t mark = name.rfind(kMark);
    if (mark == std::string_view::npos || !name.starts_with('.') || !name.ends_with(kTail))
        return {};
    if (!target.empty() && name.substr(0, mark + kMark.size()) != beginning_for(target)) return {};
    name.remove_prefix(mark + kMark.size());
    const size_t dash = name.find('-');
    if (dash == std::string_view::npos || name.size() - dash != 1 + kRandomDigits + kTail.size())
        return {};
    const std::optional<pid_t> process = parsed<pid_t>(name.substr(0, dash));
    return process && *process > 0 ? process : std::nullopt;
}

std::string_view digits_of(std::string_view name)
{
    return name.substr(name.size() - kTail.size() - kRandomDigits, kFirstDigits);
}

bool is_leftover(std::string_view name, std::string_view target)
{
    const std::optional<pid_t> process = writer_of(name, target);
    if (!process) return false;
    return *process == getpid() ? !is_mine(name) : !is_alive(*process);
}

}  // namespace

Temporary::Temporary(const Descriptor &folder, std::string_view target)
    : folder_(folder), name_(new_name(target)), owner_(getpid())
{
}

Temporary::~Temporary()
{
    if (is_there_ && owner_ == getpid()) remove_entry(folder_, name());
    const std::lock_guard lock(in_use.mutex);
    in_use.names.erase(name_);
}

int Temporary::make_folder()
{
    is_there_ = file_calls().mkdir(folder_.get(), name(), 0777) == 0;
    return is_there_ ? 0 : errno;
}

const char *Temporary::name() const
{
    return name_.c_str();
}

std::string Temporary::digits() const
{
    return std::string(digits_of(name_));
}

bool is_temporary_of(std::string_view name, std::string_view target)
{
    return writer_of(name, target).has_value();
}

std::set<std::string, std::less<>> digits_of_writers(const std::vector<std::string> &entries,
                                                     std::string_view target)
{
    std::set<std::string, std::less<>> digits;
    for (const std::string &name : entries)
        if (is_temporary_of(name, target) && !is_leftover(name, target))
            digits.emplace(digits_of(name));
    return digits;
}

// ---- Removing ---------------------------------------------------------------------------------------------------

namespace {

int remove_contents(const Descriptor &parent, const char *name)
{
    const Descriptor folder(
        file_calls().open(parent.get(), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0));
    std::vector<std::string> names;
    if (!folder.is_open() || file_calls().list(folder.get(), &names) != 0) return errno;
    std::ranges::sort(names, {}, [](const std::string &one) { return one == kManifestName; });
    int first = 0;
    for (const std::string &one : names) {
        if (first && one == kManifestName) return first;
        const int error = remove_entry(folder, one.c_str());
        if (!first) first = error;
    }
    return first;
}

}  // namespace

int remove_entry(const Descriptor &folder, const char *name)
{
    if (file_calls().unlink(folder.get(), name) == 0) return 0;
    if (errno != EISDIR && errno != EPERM) return errno;
    if (const int error = remove_contents(folder, name)) return error;
    return file_calls().rmdir(folder.get(), name) == 0 ? 0 : errno;
}

namespace {

void remove_leftovers_of(const Descriptor &folder, const std::vector<std::string> &entries,
                         std::string_view target)
{
    for (const std::string &name : entries) {
        if (!is_leftover(name, target)) continue;
        struct stat status {};
        if (file_calls().status(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        // A folder may have been renamed to this name, and come back after a crash until the rename is on the disk.
        if (!S_ISDIR(status.st_mode) || sync_folder(folder) == 0)
            remove_entry(folder, name.c_str());
    }
}

}  // namespace

void remove_leftovers(const Descriptor &folder, std::string_view target)
{
    std::vector<std::string> names;
    if (file_calls().list(folder.get(), &names) == 0) remove_leftovers_of(folder, names, target);
}

void remove_leftovers(const Descriptor &folder, const std::vector<std::string> &entries)
{
    remove_leftovers_of(folder, entries, "");
}

void remove_leftovers(const std::string &folder, std::string_view name)
{
    try {
        remove_leftovers(open_folder("remove_leftovers", folder), name);
    } catch (const Error &) {  // missing, or not readable
    }
}

}  // namespace yoke
