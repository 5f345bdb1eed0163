// The place of leases: one folder for all users of a machine, whoever makes it. Also finds out whether other
// containers see the folder.
#include "core/select/lease_folder.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/text.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace yoke {

namespace {

std::atomic<bool> warned{false};

[[noreturn]] __attribute__((cold)) void fail_folder(const std::string &folder, const char *what,
                                                    int number)
{
    fail(
        YOKE_E_IO,
        "the lease folder %s %s: %s; make it writable for all users of the GPUs (mkdir -p %s; chmod 1777 %s), or set YOKE_LEASE_DIR to a writable folder",
        folder.c_str(), what, strerror(number), folder.c_str(), folder.c_str());
}

// Returns 0 if the folder exists, is a folder, and allows new files; else an errno. A folder named by the user may be
// a link and belong to any user. The usual folder, if all users may write above, must not let a stranger remove
// files.
int error_of_folder(const std::string &folder, bool is_named)
{
    struct stat found {};
    if ((is_named ? stat : lstat)(folder.c_str(), &found) != 0) return errno;
    if (S_ISLNK(found.st_mode)) return ELOOP;
    if (!S_ISDIR(found.st_mode)) return ENOTDIR;
    const bool is_trusted = found.st_uid == 0 || found.st_uid == geteuid();
    if (!is_named && !is_trusted && !(found.st_mode & S_ISVTX)) return EPERM;
    detail::Opening opening;
    for (;;) {
        if (access(folder.c_str(), R_OK | W_OK | X_OK) == 0) return 0;
        const int number = errno;
        if (number != EACCES || !opening.may_come(folder)) return number;
    }
}

int error_of_made_folder(const std::string &folder, bool is_named)
{
    if (mkdir(folder.c_str(), 0777) == 0) {
        // The umask has taken bits away; the folder is for all users.
        if (chmod(folder.c_str(), 01777) != 0) return errno;
    } else if (errno != EEXIST) {
        return errno;
    }
    return error_of_folder(folder, is_named);
}

bool is_for_all(const std::string &folder, bool &exists)
{
    struct stat found {};
    exists = lstat(folder.c_str(), &found) == 0;
    return exists && S_ISDIR(found.st_mode) && (found.st_mode & 01777) == 01777;
}

struct Mount {
    int major = -1, minor = -1;
    std::string root, point, type;
};

// Reads a line of mountinfo, "36 35 98:0 /part /place rw,noatime master:1 - ext3 /dev/root rw".
Mount mount_of(const std::string &line)
{
    Mount mount;
    std::istringstream words(line);
    std::string id, parent, device, word;
    words >> id >> parent >> device >> mount.root >> mount.point;
    static_cast<void>(sscanf(device.c_str(), "%d:%d", &mount.major, &mount.minor));
    while (words >> word && word != "-") continue;
    words >> mount.type;
    return mount;
}

}  // namespace

std::string lease_folder()
{
    return detail::find_lease_folder(true);
}

void warn_of_private_leases(std::string_view container)
{
    if (container.empty() || warned.load()) return;
    const std::string folder = lease_folder();
    if (!detail::is_private_mount(file_text("/proc/self/mountinfo"), folder)) return;
    if (warned.exchange(true)) return;
    log(LogLevel::kWarn,
        "leases are in %s, a folder of this container, so other containers do not see them; mount one folder of the host into every container that uses its GPUs, and set YOKE_LEASE_DIR to it",
        folder.c_str());
}

namespace detail {

bool Opening::may_come(const std::string &path)
{
    struct stat found {};
    if (++pauses_ > 200 || stat(path.c_str(), &found) != 0) return false;
    if (time(nullptr) - found.st_ctime > 1) return false;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
    return true;
}

std::string find_lease_folder(bool make)
{
    const char *named = config("YOKE_LEASE_DIR");
    const std::string folder = named ? named : detail::usual_lease_folder();
    const int number = (make ? error_of_made_folder : error_of_folder)(folder, named != nullptr);
    if (number == ENOENT && !make) return "";
    if (number)
        fail_folder(folder, named ? "(YOKE_LEASE_DIR) cannot be used" : "cannot be used", number);
    return folder;
}

std::string usual_lease_folder(const std::string &root)
{
    bool exists = false, parent_exists = false;
    const std::string best = root + "/run/lock/yoke";
    Opening opening;
    do {
        if (is_for_all(best, exists)) return best;
    } while (exists && opening.may_come(best));
    // The choice depends only on facts alike for all users, not on this user's permissions. Else, two users could
    // lease one card in two folders.
    if (!exists && is_for_all(root + "/run/lock", parent_exists)) return best;
    return root + "/tmp/yoke-leases";
}

bool is_private_mount(const std::string &mountinfo, const std::string &folder)
{
    std::istringstream lines(mountinfo);
    Mount own, best;
    for (std::string line; std::getline(lines, line);) {
        const Mount mount = mount_of(line);
        if (mount.point == "/") own = mount;
        const bool holds =
            mount.point == "/" || folder == mount.point || folder.rfind(mount.point + "/", 0) == 0;
        // If two mounts have the same place, the later mount covers the earlier.
        if (holds && mount.point.size() >= best.point.size()) best = mount;
    }
    if (best.point == "/") return true;
    // A folder of the host comes in as a part of a file system, a disk or a share as a whole one.
    if (best.root != "/" || best.type != "tmpfs") return false;
    // The kernel numbers file systems without a disk in order. The host's memory file systems existed before the
    // container's own root.
    return best.major == 0 && own.major == 0 && best.minor > own.minor;
}

}  // namespace detail

}  // namespace yoke
