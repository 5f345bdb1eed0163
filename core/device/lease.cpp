#include "core/device/lease.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace yoke {

namespace {

struct Held {
    std::string name;
    int file;
    int count = 1;  // how often it was taken
};

struct State {
    Mutex mutex{LockRank::kOther};
    std::vector<Held> held;
    std::string folder;  // the last one that was found good, for the message of a later failure
};
// Made while the library is loaded, so that no fork finds it half made; never destroyed.
State &state = *new State;
std::atomic<bool> warned{false};

// In a child: its copies of the parent's locks. Closing one gives up nothing while the parent has its own.
void let_go_in_child()
{
    for (const Held &each : state.held) close(each.file);
    state.held.clear();
}

class File {
public:
    explicit File(int file) : file_(file) {}
    ~File()
    {
        if (file_ >= 0) close(file_);
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    int get() const { return file_; }
    int detach() { return std::exchange(file_, -1); }

private:
    int file_;
};

[[noreturn]] __attribute__((cold)) void fail_folder(const std::string &folder, const char *what,
                                                    int number)
{
    fail(YOKE_E_IO,
         "the lease folder %s %s: %s; make it writable for all who share the GPUs (mkdir -p %s; "
         "chmod 1777 %s), or "
         "set YOKE_LEASE_DIR to one that is",
         folder.c_str(), what, strerror(number), folder.c_str(), folder.c_str());
}

// 0 if the folder is there, a folder, and files can be made in it; else the error's number.
int make_usable(const std::string &folder, bool follow)
{
    if (mkdir(folder.c_str(), 0777) == 0) {
        // The umask took bits away; who makes the folder makes it for all.
        if (chmod(folder.c_str(), 01777) != 0) return errno;
    } else if (errno != EEXIST) {
        return errno;
    }
    struct stat found {};
    if ((follow ? stat : lstat)(folder.c_str(), &found) != 0) return errno;
    if (S_ISLNK(found.st_mode)) return ELOOP;
    if (!S_ISDIR(found.st_mode)) return ENOTDIR;
    return access(folder.c_str(), R_OK | W_OK | X_OK) == 0 ? 0 : errno;
}

std::vector<std::string> usual_folders()
{
    std::vector<std::string> all{"/run/lock/yoke"};
    const char *own = getenv("XDG_RUNTIME_DIR");
    if (own && *own == '/') all.push_back(std::string(own) + "/yoke");
    all.emplace_back("/tmp/yoke-leases");
    return all;
}

std::string path_of(std::string_view card)
{
    return lease_folder() + "/" + detail::lease_name(card) + ".lease";
}

// Opened without O_CREAT first: in a sticky folder the kernel may refuse that flag for a file of somebody else, even one
// that all may write (fs.protected_regular).
int open_lease(const std::string &path)
{
    constexpr int kFlags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    for (int i = 0; i < 100; ++i) {
        int file = open(path.c_str(), O_RDWR | kFlags);
        if (file < 0 && errno == EACCES) file = open(path.c_str(), O_RDONLY | kFlags);
        if (file >= 0 || errno != ENOENT) return file;
        file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFlags, 0666);
        if (file >= 0) {
            static_cast<void>(fchmod(file, 0666));  // whatever the umask
            return file;
        }
        if (errno != EEXIST) return -1;
    }
    return -1;
}

void check_file(const std::string &path, int file)
{
    struct stat found {};
    if (file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode)) return;
    const int number = file < 0 ? errno : EINVAL;
    fail(YOKE_E_IO,
         "the lease file %s cannot be opened: %s; it must be a plain file that all who share the "
         "GPU may write "
         "(chmod 666 %s)",
         path.c_str(), strerror(number), path.c_str());
}

// Locks it if it is free.
bool lock_now(int file, const std::string &path)
{
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    fail(YOKE_E_IO,
         "the lease file %s cannot be locked: %s; set YOKE_LEASE_DIR to a folder on a local disk",
         path.c_str(), strerror(errno));
}

// For messages of others. A file that may not be written keeps its old text, which nobody believes then.
void write_pid(int file)
{
    char text[32];
    const int length = snprintf(text, sizeof text, "%d\n", static_cast<int>(getpid()));
    if (ftruncate(file, 0) == 0)
        static_cast<void>(!pwrite(file, text, static_cast<size_t>(length), 0));
}

std::string read_text(const char *path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
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

// Who has the lock of an open lease file that is locked. The kernel's list is right where it tells anything: it is silent
// on processes of other PID namespaces, and then the text in the file means one of theirs too.
int32_t holder_of(int file)
{
    struct stat found {};
    if (fstat(file, &found) != 0) return -1;
    const std::string locks = read_text("/proc/locks");
    if (const int32_t pid = detail::holder_in(locks, found.st_dev, found.st_ino)) return pid;
    // Some file systems list their locks under another device number than they show.
    return locks.find(":" + std::to_string(found.st_ino) + " ") == std::string::npos
               ? -1
               : pid_in_file(file);
}

// Under the lock from the file's opening on, so that a fork finds either no lock or one that its child knows of.
bool take_now(const std::string &name, const std::string &path)
{
    const std::lock_guard lock(state.mutex);
    for (Held &each : state.held)
        if (each.name == name) return ++each.count, true;
    File file(open_lease(path));
    check_file(path, file.get());
    if (!lock_now(file.get(), path)) return false;
    write_pid(file.get());
    state.held.push_back({name, file.get(), 1});
    static_cast<void>(file.detach());
    return true;
}

}  // namespace

std::string lease_folder()
{
    if (const char *named = config("YOKE_LEASE_DIR")) {
        if (const int number = make_usable(named, true))
            fail_folder(named, "(YOKE_LEASE_DIR) cannot be used", number);
        return named;
    }
    int number = 0;
    std::string tried;
    for (const std::string &folder : usual_folders()) {
        number = make_usable(folder, false);
        if (!number) return folder;
        tried += (tried.empty() ? "" : ", ") + folder + " (" + strerror(number) + ")";
    }
    fail(YOKE_E_IO,
         "there is no folder for leases: %s; set YOKE_LEASE_DIR to one that all who share the "
         "GPUs can write",
         tried.c_str());
}

bool take_lease(std::string_view card)
{
    const std::string name = detail::lease_name(card);
    const std::string path = path_of(card);
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

// One time fewer, or at once.
static void give_up(std::string_view card, bool at_once) noexcept
{
    int file = -1;
    try {
        const std::string name = detail::lease_name(card);
        const std::lock_guard lock(state.mutex);
        for (auto at = state.held.begin(); at != state.held.end(); ++at)
            if (at->name == name) {
                if (!at_once && --at->count > 0) return;
                file = at->file;
                state.held.erase(at);
                break;
            }
    } catch (...) {
        return;  // a name that is none has no lease
    }
    if (file < 0) return;
    static_cast<void>(!ftruncate(file, 0));
    // At once, should a process that was started without exec() still have a copy of it.
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
    try {
        const std::string name = detail::lease_name(card);
        const std::lock_guard lock(state.mutex);
        for (const Held &each : state.held)
            if (each.name == name) return true;
    } catch (...) {
    }
    return false;
}

int32_t lease_holder(std::string_view card)
{
    const std::string name = detail::lease_name(card);
    if (holds_lease(card)) return static_cast<int32_t>(getpid());
    const std::string path = path_of(card);
    const File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0 && errno == ENOENT) return 0;
    check_file(path, file.get());
    if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) {
        flock(file.get(), LOCK_UN);
        return 0;
    }
    return holder_of(file.get());
}

void warn_of_private_leases(std::string_view container)
{
    if (container.empty() || warned.load()) return;
    const std::string folder = lease_folder();
    if (!detail::is_private_mount(read_text("/proc/self/mountinfo"), folder)) return;
    if (warned.exchange(true)) return;
    log(LogLevel::kWarn,
        "leases lie in %s, which is this container's own: processes elsewhere do not see them; "
        "mount one folder of the "
        "host into every container that uses its GPUs, and name it by YOKE_LEASE_DIR",
        folder.c_str());
}

namespace detail {

std::string lease_name(std::string_view card)
{
    std::string name(card);
    for (char &c : name) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
    if (name.rfind("gpu-", 0) == 0 || name.rfind("mig-", 0) == 0) name.erase(0, 4);
    for (char &c : name)
        if (!isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
    if (name.empty() || name.size() > 120)
        fail(YOKE_E_VALUE, "'%s' is no UUID of a card, by which a lease is known",
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

bool is_private_mount(const std::string &mountinfo, const std::string &folder)
{
    std::istringstream lines(mountinfo);
    std::string best, best_root;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string id, parent, device, root, point;
        words >> id >> parent >> device >> root >> point;
        const bool holds = point == "/" || folder == point || folder.rfind(point + "/", 0) == 0;
        // Of two mounts at one place the later one covers the earlier.
        if (holds && point.size() >= best.size()) best = point, best_root = root;
    }
    // A folder of the host comes in as a part of a file system, a whole one only at a place of its own.
    return best_root == "/" &&
           (best == "/" || best == "/run" || best == "/tmp" || best == "/run/lock");
}

}  // namespace detail

}  // namespace yoke
