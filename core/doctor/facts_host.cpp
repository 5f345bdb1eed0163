// The doctor's facts about the host: limits, the distribution, Thunderbolt docks, the lease folder.
#include "core/base/cgroup.h"
#include "core/base/config.h"
#include "core/device/kinds.h"
#include "core/doctor/facts.h"
#include "core/machine/files.h"
#include "core/select/lease.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace yoke::doctor {

namespace {

// Reads the distribution from lines such as ID=ubuntu and ID_LIKE="rhel fedora".
void read_distribution(RecordedRoot &root, Facts &facts)
{
    for (const std::string &line : lines_of(root.text("/etc/os-release").value_or(""))) {
        const size_t equals = line.find('=');
        if (equals == line.npos) continue;
        std::string value = line.substr(equals + 1);
        value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
        if (line.compare(0, equals, "ID") == 0) facts.distribution = value;
        if (line.compare(0, equals, "ID_LIKE") == 0) facts.distribution_like = value;
    }
}

// Returns a size in bytes: "65536k" gives 67108864.
long long size_of(const std::string &text)
{
    std::string_view rest;
    const double number = number_of(text, &rest);
    const char *units = "kmgt";
    const char *unit = rest.empty() ? nullptr : strchr(units, rest.front() | 0x20);
    return static_cast<long long>(std::ldexp(number, unit ? 10 * int(unit - units + 1) : 0));
}

void read_shared_memory(RecordedRoot &root, Facts &facts)
{
    std::string kept;  // the other mounts name private servers and folders
    for (const std::string &line : lines_of(root.text("/proc/self/mounts").value_or(""))) {
        if (line.find(" /dev/shm ") == line.npos) continue;
        kept += line + "\n";
        const size_t size = line.find("size=");
        facts.mount_options = line;
        if (size != line.npos) facts.shared_memory = size_of(line.substr(size + 5));
    }
    root.note("/proc/self/mounts", kept);
    struct statvfs space {};
    if (facts.shared_memory < 0 && !RecordedRoot::is_foreign() && statvfs("/dev/shm", &space) == 0)
        facts.shared_memory = static_cast<long long>(space.f_blocks * space.f_frsize);
}

// Reads the process's limits, from lines such as "Max locked memory         8388608              8388608 bytes". Also
// reads whether the process has CAP_SYS_ADMIN. A limit of -1 means unlimited.
void read_limits(RecordedRoot &root, Facts &facts)
{
    facts.locked_memory = -2;
    for (const std::string &line : lines_of(root.text("/proc/self/limits").value_or(""))) {
        const auto read = [&](const std::string &name, long long &limit) {
            if (line.compare(0, name.size(), name) != 0) return;
            const std::string soft = trimmed(line.substr(name.size()));
            limit = soft.compare(0, 9, "unlimited") == 0 ? -1 : atoll(soft.c_str());
        };
        read("Max locked memory", facts.locked_memory);
        read("Max address space", facts.memory.address_space);
        read("Max data size", facts.memory.data);
    }
    for (const std::string &line : lines_of(root.text("/proc/self/status").value_or(""))) {
        if (line.compare(0, 7, "CapEff:") != 0) continue;
        const unsigned long long granted = strtoull(line.c_str() + 7, nullptr, 16);
        constexpr int kSysAdmin = 21;
        facts.administrator = granted >> kSysAdmin & 1;
    }
}

void read_processors(RecordedRoot &root, Facts &facts)
{
    const Groups groups{root.text("/proc/self/cgroup").value_or(""),
                        under_sysroot("/sys/fs/cgroup")};
    facts.quota = groups.processors();
    const Groups::Memory group = groups.memory();
    if (group.limit > 0) {
        facts.memory.group = static_cast<long long>(group.limit);
        facts.memory.group_used = static_cast<long long>(group.used);
        facts.memory.group_file = group.file.substr(under_sysroot("").size());
    }
    const std::string online = root.line("/sys/devices/system/cpu/online");
    const size_t dash = online.rfind('-');
    facts.processors = dash == online.npos ? 1 : atoi(online.c_str() + dash + 1) + 1;
}

// Reads the machine's total and available memory, from lines such as "MemTotal:       65536 kB". -1 means unknown.
void read_memory(RecordedRoot &root, Facts &facts)
{
    const std::string text = root.text("/proc/meminfo").value_or("");
    const auto bytes_of = [&](const char *key) {
        const std::string field = field_of(text, key);
        return field.empty() ? -1 : atoll(field.c_str()) * 1024;
    };
    facts.memory.total = bytes_of("MemTotal");
    facts.memory.available = bytes_of("MemAvailable");
}

// Returns the first five words of a line of mountinfo, or "" if the mount is not above a folder. The other words name
// servers and folders.
std::string mount_above(const std::string &line, const std::string &folder)
{
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    words >> id >> parent >> device >> root >> point;
    const bool above = point == "/" || folder == point || folder.rfind(point + "/", 0) == 0;
    return above ? id + " " + parent + " " + device + " " + (root == "/" ? "/" : "/part") + " " +
                       point + "\n"
                 : "";
}

bool is_sticky(const std::string &folder)
{
    struct stat found {};
    return stat(folder.c_str(), &found) != 0 || !(found.st_mode & S_IWOTH) ||
           (found.st_mode & S_ISVTX);
}

void read_leases(RecordedRoot &root, Facts &facts)
{
    LeaseFolder &leases = facts.leases;
    leases.named = !facts.variable("YOKE_LEASE_DIR").empty();
    leases.path =
        leases.named ? facts.variable("YOKE_LEASE_DIR") : yoke::detail::usual_lease_folder();
    // The variable names a folder of this machine, even for another root.
    leases.exists = access(leases.path.c_str(), F_OK) == 0;
    leases.writable = access(leases.path.c_str(), W_OK | X_OK) == 0;
    leases.sticky = is_sticky(leases.path);
    const std::string mounts = root.text("/proc/self/mountinfo").value_or("");
    leases.shared = !yoke::detail::is_private_mount(mounts, leases.path);
    std::string kept;
    for (const std::string &line : lines_of(mounts)) kept += mount_above(line, leases.path);
    root.note("/proc/self/mountinfo", kept);
}

// Reads facts without a file of their own from a recording's file yoke/host, "shared_memory 67108864". On the machine
// itself, notes these facts for a recording.
void read_recorded(RecordedRoot &root, Facts &facts)
{
    if (!RecordedRoot::is_foreign()) {
        const LeaseFolder &leases = facts.leases;
        facts.cuda_opened = !opened_devices_of("cuda").empty();
        root.note("/yoke/host", "shared_memory " + std::to_string(facts.shared_memory) +
                                    "\nquota " + format("%f", facts.quota) + "\nlease_exists " +
                                    std::to_string(leases.exists) + "\nlease_writable " +
                                    std::to_string(leases.writable) + "\nlease_shared " +
                                    std::to_string(leases.shared) + "\nlease_sticky " +
                                    std::to_string(leases.sticky) + "\ncuda_opened " +
                                    std::to_string(facts.cuda_opened) + "\nmemory_group " +
                                    std::to_string(facts.memory.group) + "\nmemory_used " +
                                    std::to_string(facts.memory.group_used) + "\nmemory_file " +
                                    facts.memory.group_file + "\n");
        return;
    }
    for (const std::string &line : lines_of(root.text("/yoke/host").value_or(""))) {
        const size_t blank = line.find(' ');
        const std::string key = line.substr(0, blank);
        const double value = blank == line.npos ? 0 : number_of(line.substr(blank));
        if (key == "shared_memory") facts.shared_memory = static_cast<long long>(value);
        if (key == "quota") facts.quota = value;
        if (key == "lease_exists") facts.leases.exists = value != 0;
        if (key == "lease_writable") facts.leases.writable = value != 0;
        if (key == "lease_shared") facts.leases.shared = value != 0;
        if (key == "lease_sticky") facts.leases.sticky = value != 0;
        if (key == "memory_group") facts.memory.group = static_cast<long long>(value);
        if (key == "memory_used") facts.memory.group_used = static_cast<long long>(value);
        if (key == "memory_file") facts.memory.group_file = trimmed(line.substr(blank));
        if (key == "cuda_opened") facts.cuda_opened = value != 0;
    }
}

}  // namespace

// Returns whether the device is in safe mode. In safe mode, a device has no version (ENODATA). Before the first read,
// there is no version yet either (EAGAIN), but this is no trouble. In a recording, the first case is an empty file,
// and the second a missing file.
static bool is_safe_mode(RecordedRoot &root, const std::string &path, const std::string &firmware)
{
    const int error = root.problem();
    const bool none =
        error == ENODATA || (error == 0 && RecordedRoot::is_foreign() && firmware.empty());
    return none && root.exists(path);
}

void read_docks(RecordedRoot &root, Facts &facts)
{
    const std::string bus = "/sys/bus/thunderbolt/devices/";
    for (const std::string &id : root.list(bus)) {
        // "0-1" is a device, "0-0" the host itself; "domain0", "0-1.1" (a retimer) and "usb4_port1" are no devices.
        if (id.find('-') == id.npos || id.find_first_not_of("0123456789-") != id.npos ||
            id.substr(id.find('-')) == "-0")
            continue;
        const std::string place = bus + id + "/";
        Dock dock;
        dock.id = id;
        dock.name =
            trimmed(root.line(place + "vendor_name") + " " + root.line(place + "device_name"));
        dock.uuid = root.line(place + "unique_id");
        dock.authorized = root.line(place + "authorized");
        dock.security = root.line(bus + "domain" + id.substr(0, id.find('-')) + "/security");
        dock.generation = atoi(root.line(place + "generation").c_str());
        const std::string speed = root.line(place + "rx_speed");
        if (!speed.empty()) dock.speed = number_of(speed);
        const std::string width = root.line(place + "rx_lanes");
        if (!width.empty()) dock.width = atoi(width.c_str());
        const auto firmware = root.text(place + "nvm_version");
        dock.firmware = trimmed(firmware.value_or(""));
        dock.safe_mode = is_safe_mode(root, place + "nvm_version", dock.firmware);
        dock.update_status = root.line(place + "nvm_authenticate");
        facts.docks.push_back(dock);
    }
}

void read_host(RecordedRoot &root, Facts &facts)
{
    read_distribution(root, facts);
    read_shared_memory(root, facts);
    read_limits(root, facts);
    read_processors(root, facts);
    read_memory(root, facts);
    read_leases(root, facts);
    read_recorded(root, facts);
}

}  // namespace yoke::doctor
