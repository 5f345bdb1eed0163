#include "core/select/lease.h"

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/text.h"
#include "core/select/lease_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace yoke {

namespace {

struct Held {
    std::string name;
    int file;
    int count = 1;  // number of take_lease() calls
};

struct State {
    Mutex mutex{LockRank::kOther};
    std::vector<Held> held;
};
State &state = immortal<State>();

// Closes a child's copies of the parent's locks. The parent's lock stays, as the parent has its own copy.
void let_go_in_child()
{
    for (const Held &each : state.held) close(each.file);
    state.held.clear();
}

// Returns a character of a card's name as written in a lease's name.
char lease_char(char c)
{
    c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
    return isalnum(static_cast<unsigned char>(c)) || c == '-' ? c : '_';
}

// Returns the card's name without the driver's prefix.
std::string_view bare_name(std::string_view card)
{
    constexpr size_t kWord = sizeof("gpu-") - 1;
    if (card.size() < kWord) return card;
    const char word[] = {lease_char(card[0]), lease_char(card[1]), lease_char(card[2]),
                         lease_char(card[3])};
    const std::string_view text(word, kWord);
    return text == "gpu-" || text == "mig-" ? card.substr(kWord) : card;
}

// Returns whether the lease is the card's. Must not raise, so no name is built for the comparison.
bool is_lease_of(const Held &held, std::string_view card) noexcept
{
    return std::ranges::equal(held.name, bare_name(card), {}, {}, lease_char);
}

std::string path_in(const std::string &folder, std::string_view card)
{
    return folder + "/" + detail::lease_name(card) + ".lease";
}

// Opens a lease file, first without O_CREAT. In a sticky folder, the kernel may refuse O_CREAT for another user's
// file, even a file writable for all (fs.protected_regular).
int open_lease(const std::string &path)
{
    constexpr int kFlags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    detail::Opening opening;
    for (int i = 0; i < 100; ++i) {
        int file = open(path.c_str(), O_RDWR | kFlags);
        if (file < 0 && errno == EACCES) file = open(path.c_str(), O_RDONLY | kFlags);
        if (file < 0 && errno == EACCES && opening.may_come(path)) continue;
        if (file >= 0 || errno != ENOENT) return file;
        file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, 0666);
        if (file >= 0) {
            static_cast<void>(fchmod(file, 0666));  // undoes the umask
            return file;
        }
        if (errno != EEXIST) return -1;
    }
    return -1;
}

void check_file(const std::string &path, int file)
{
    // A hard link could be another user's file, and the pid would be written into this file.
    struct stat found {};
    const bool is_ours = file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode);
    if (is_ours && found.st_nlink <= 1) return;
    const int number = file < 0 ? errno : is_ours ? EMLINK : EINVAL;
    fail(
        YOKE_E_IO,
        "the lease file %s cannot be opened: %s; it must be a plain file that all users of the GPU may write (chmod 666 %s)",
        path.c_str(), strerror(number), path.c_str());
}

// Returns whether the file was removed since the open, by a cleanup of old files. The next file at the path is
// another file, so this lock would not protect the card.
bool is_removed(int file)
{
    struct stat found {};
    return fstat(file, &found) == 0 && found.st_nlink == 0;
}

// Locks the file, and returns whether this was possible at once. Raises YOKE_E_IO if such files cannot be locked.
bool lock_now(int file, const std::string &path)
{
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    fail(YOKE_E_IO,
         "the lease file %s cannot be locked: %s; set YOKE_LEASE_DIR to a folder on a local disk",
         path.c_str(), strerror(errno));
}

// Writes the pid for messages of other processes. A file that is not writable keeps its old text, but no process
// trusts the text then.
void write_pid(int file)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%d\n", static_cast<int>(getpid()));
    if (ftruncate(file, 0) == 0)
        static_cast<void>(!pwrite(file, text, static_cast<size_t>(length), 0));
}

int32_t pid_in_file(int file)
{
    char text[32] = "";
    if (pread(file, text, sizeof text - 1, 0) <= 0) return -1;
    const long pid = strtol(text, nullptr, 10);
    const bool lives =
        pid > 0 && pid <= INT32_MAX && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
    return lives ? static_cast<int32_t>(pid) : -1;
}

// Returns the process with the lock of a locked lease file. If the kernel's list has an entry, the entry is right.
// The list omits processes of other PID namespaces; the number in the file then belongs to such a namespace too.
int32_t holder_of(int file)
{
    struct stat found {};
    if (fstat(file, &found) != 0) return -1;
    const std::string locks = file_text("/proc/locks");
    if (const int32_t pid = detail::holder_in(locks, found.st_dev, found.st_ino)) return pid;
    // Some file systems list their locks under a device number different from stat's.
    return locks.find(":" + std::to_string(found.st_ino) + " ") == std::string::npos
               ? -1
               : pid_in_file(file);
}

// Takes the lease, or counts one more if this process holds the lease. Returns false if another process has the lock,
// or the file was removed. Holds the lock of the state from the open on, so a fork finds either no lease, or a lease
// known to the child.
bool take_now(const std::string &name, const std::string &path)
{
    const std::lock_guard lock(state.mutex);
    for (Held &each : state.held)
        if (each.name == name) return ++each.count, true;
    OwnedFile file(open_lease(path));
    check_file(path, file.get());
    if (!lock_now(file.get(), path) || is_removed(file.get())) return false;
    write_pid(file.get());
    state.held.push_back({name, file.get(), 1});
    static_cast<void>(file.release());
    return true;
}

}  // namespace

bool take_lease(std::string_view card)
{
    const std::string name = detail::lease_name(card);
    const std::string path = path_in(lease_folder(), card);
    on_fork_child(let_go_in_child);
    mark_process_used();
    // A look at the lease by another process locks the file for an instant, shared; so a few tries tell the two apart.
    constexpr int kTries = 12;
    for (int i = 0; i < kTries; ++i) {
        if (take_now(name, path)) return true;
        const timespec pause{0, 500'000};
        nanosleep(&pause, nullptr);
    }
    return false;
}

// Takes one take_lease() of the card back, or all at once. With the last, unlocks and closes the file.
static void give_up(std::string_view card, bool at_once) noexcept
{
    int file = -1;
    {
        const std::lock_guard lock(state.mutex);
        for (auto at = state.held.begin(); at != state.held.end(); ++at)
            if (is_lease_of(*at, card)) {
                if (!at_once && --at->count > 0) return;
                file = at->file;
                state.held.erase(at);
                break;
            }
    }
    if (file < 0) return;
    static_cast<void>(!ftruncate(file, 0));
    // Unlocks at once, in case a process started without exec() still has a copy of the file.
    flock(file, LOCK_UN);
    close(file);
}

void drop_lease(std::string_view card) noexcept
{
    give_up(card, true);
}

void return_lease(std::string_view card) noexcept
{
    give_up(card, false);
}

bool holds_lease(std::string_view card) noexcept
{
    const std::lock_guard lock(state.mutex);
    return std::ranges::any_of(state.held,
                               [card](const Held &each) { return is_lease_of(each, card); });
}

int32_t lease_holder(std::string_view card)
{
    const std::string name = detail::lease_name(card);
    if (holds_lease(card)) return static_cast<int32_t>(getpid());
    const std::string folder = detail::find_lease_folder(false);
    if (folder.empty()) return 0;
    const std::string path = path_in(folder, card);
    detail::Opening opening;
    int opened = -1;
    do {
        opened = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    } while (opened < 0 && errno == EACCES && opening.may_come(path));
    const OwnedFile file(opened);
    if (!file.is_open() && errno == ENOENT) return 0;
    check_file(path, file.get());
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
        flock(file.get(), LOCK_UN);
        return 0;
    }
    return holder_of(file.get());
}

namespace detail {

std::string lease_name(std::string_view card)
{
    std::string name(bare_name(card));
    std::ranges::transform(name, name.begin(), lease_char);
    if (name.empty() || name.size() > 120)
        fail(YOKE_E_VALUE, "'%s' is not the UUID of a card; a lease needs the card's UUID",
             std::string(card).c_str());
    return name;
}

int32_t holder_in(const std::string &locks, uint64_t device, uint64_t inode)
{
    const std::string where = format("%02x:%02x:%llu", major(device), minor(device),
                                     static_cast<unsigned long long>(inode));
    std::istringstream lines(locks);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string number, type, how, mode, pid, place;
        words >> number >> type >> how >> mode >> pid >> place;
        if (type == "FLOCK" && mode == "WRITE" && place == where)
            return static_cast<int32_t>(strtol(pid.c_str(), nullptr, 10));
    }
    return 0;
}

}  // namespace detail

}  // namespace yoke
