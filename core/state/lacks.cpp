#include "core/state/lacks.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <system_error>
#include <vector>

namespace yoke {

namespace {

// Meaning of a Lack: the failed call, and the property no longer promised.
struct Meaning {
    const char *call, *promise;
    std::vector<int> errors;  // errors that mean "no such call", besides kNoSuchCall
};
const std::array<Meaning, kLacks> &meanings = immortal<std::array<Meaning, kLacks>>() = {{
    // EBADF: some systems take a folder open for reading as not writable.
    {"fsync of a folder", "a saved state may be lost when the machine stops", {EBADF}},
    {"fsync of a file", "the data of a saved state may be lost when the machine stops", {}},
    {"flock", "two processes may save to one folder at a time", {ENOLCK}},
    {"fchmod", "a new file may have other permissions than the replaced file", {EPERM}},
    {"rename of a folder",
     "a step may be incomplete while it is saved or removed",
     {EXDEV, EPERM, EMFILE}},
}};
constexpr int kNoSuchCall[] = {EINVAL, ENOSYS, EOPNOTSUPP};

// Unsupported calls of a file system, each with the errno; 0: the call is supported.
struct Lacking {
    std::array<int, kLacks> errors{};
    std::array<bool, kLacks> is_told{};
    std::string place;
};
struct Known {
    Mutex mutex{LockRank::kOther};
    std::map<dev_t, Lacking> by_device;
};
Known &known_lacks = immortal<Known>();

std::string place_of_file(const Descriptor &file)
{
    const std::string link = "/proc/self/fd/" + std::to_string(file.get());
    char to[4096];
    const ssize_t length = file_calls().read_link(AT_FDCWD, link.c_str(), to, sizeof to);
    return length > 0 ? std::string(to, static_cast<size_t>(length)) : "?";
}

// Returns what the noted calls no longer promise, and marks the notes as reported. Returns "" if all notes were
// reported.
std::string untold(Lacking &lacking)
{
    std::string text;
    for (size_t i = 0; i < kLacks; ++i) {
        if (!lacking.errors[i] || lacking.is_told[i]) continue;
        lacking.is_told[i] = true;
        add_part(text,
                 format("%s (%s: %s)", meanings[i].promise, meanings[i].call,
                        std::generic_category().message(lacking.errors[i]).c_str()),
                 "; ");
    }
    return text;
}

}  // namespace

bool is_lacking(Lack lack, int error)
{
    const std::vector<int> &errors = meanings[static_cast<size_t>(lack)].errors;
    return std::ranges::find(kNoSuchCall, error) != std::end(kNoSuchCall) ||
           std::ranges::find(errors, error) != errors.end();
}

void note_lack(Lack lack, const Descriptor &file, int error) noexcept
{
    try {
        struct stat status {};
        if (file_calls().file_status(file.get(), &status) != 0) return;
        std::string place = place_of_file(file);
        const std::lock_guard lock(known_lacks.mutex);
        Lacking &lacking = known_lacks.by_device[status.st_dev];
        lacking.errors[static_cast<size_t>(lack)] = error;
        if (lacking.place.empty()) lacking.place = std::move(place);
    } catch (const std::bad_alloc &) {  // the next save tries again
    }
}

void tell_lacks(const char *call) noexcept
{
    try {
        std::vector<std::pair<std::string, std::string>> lines;
        {
            const std::lock_guard lock(known_lacks.mutex);
            for (auto &[device, lacking] : known_lacks.by_device)
                if (std::string text = untold(lacking); !text.empty())
                    lines.emplace_back(lacking.place, std::move(text));
        }
        for (const auto &[place, text] : lines)
            log(LogLevel::kWarn,
                "%s: the file system of '%s' does not support some calls, so %s; if that matters, save to another file system",
                call, place.c_str(), text.c_str());
    } catch (const std::bad_alloc &) {
    }
}

void forget_lacks() noexcept
{
    const std::lock_guard lock(known_lacks.mutex);
    known_lacks.by_device.clear();
}

}  // namespace yoke
