#include "core/doctor/tree.h"

#include "core/base/error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace yoke::doctor {

namespace {

constexpr size_t kMostFiles = 4096, kMostBytes = 16u << 20;

// Attributes of a PCI device, a port or a dock that an inventory reads.
constexpr const char *kAttributes[] = {
    "vendor",
    "device",
    "class",
    "numa_node",
    "removable",
    "revision",
    "boot_vga",
    "label",
    "product_name",
    "enable",
    "subsystem_vendor",
    "subsystem_device",
    "current_link_speed",
    "max_link_speed",
    "current_link_width",
    "max_link_width",
    "mem_info_vram_total",
    "mem_info_vram_used",
    "security",
    "vendor_name",
    "device_name",
    "authorized",
    "generation",
    "nvm_authenticate",
    "rx_speed",
    "tx_speed",
    "rx_lanes",
    "tx_lanes",
    "state",
    "phys_state",
    "rate",
    "link_layer",
    "runtime_status",
    "control",
    "status",
    "enabled",
    "type",
    "secondary_bus_number",
};
// Folders of a device with more attributes.
constexpr const char *kFolders[] = {"power", "drm", "infiniband", "ports", "iommu_group"};

constexpr const char *kFiles[] = {
    "/proc/version",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/1/cgroup",
    "/etc/nv_tegra_release",
    "/proc/device-tree/model",
    "/proc/device-tree/compatible",
    "/proc/driver/nvidia/version",
    "/sys/module/nvidia/version",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/sys/hypervisor/type",
    "/.dockerenv",
    "/run/.containerenv",
    "/dev/nvmap",
    "/dev/nvgpu",
    "/dev/nvhost-gpu",
    "/dev/nvhost-ctrl-gpu",
};

// Returns the real path of the root, "" for the machine's own root.
std::string top_of_root()
{
    char real[4096];
    const char *top = realpath(under_sysroot("/").c_str(), real);
    return top && strcmp(top, "/") != 0 ? top : "";
}

// Returns the real path of a file of /sys that was read through a link. The recording has the link as a link.
std::string without_links(const std::string &path)
{
    char real[4096];
    const size_t slash = path.rfind('/');
    if (path.compare(0, 5, "/sys/") != 0 ||
        !realpath(under_sysroot(path.substr(0, slash)).c_str(), real))
        return path;
    const std::string top = top_of_root();
    if (strncmp(real, top.c_str(), top.size()) != 0) return path;
    return real + top.size() + path.substr(slash);
}

class Collector {
public:
    explicit Collector(Tree &tree) : tree_(tree) {}

    void file(const std::string &path)
    {
        if (tree_.texts.count(path) || tree_.texts.size() >= kMostFiles) return;
        struct stat status {};
        if (stat(under_sysroot(path).c_str(), &status) != 0) return;
        RecordedRoot fresh;
        std::string text;
        if (S_ISREG(status.st_mode)) text = fresh.text(path, 65536).value_or("");
        if ((bytes_ += text.size()) <= kMostBytes) tree_.texts[path] = text;
    }

    // Collects a link unchanged, if it stays in the root. Returns the link's target for further collection.
    std::string link(const std::string &path)
    {
        char target[4096], real[4096];
        const ssize_t size = readlink(under_sysroot(path).c_str(), target, sizeof target);
        if (size <= 0 || target[0] == '/' || !realpath(under_sysroot(path).c_str(), real))
            return "";
        const std::string top = top_of_root();
        if (strncmp(real, top.c_str(), top.size()) != 0) return "";
        tree_.links[path] = std::string(target, static_cast<size_t>(size));
        return real + top.size();
    }

    // Collects the attributes of a device, and of its folders.
    void device(const std::string &place, int depth = 0)
    {
        RecordedRoot fresh;
        tree_.folders.insert(place);
        for (const std::string &name : fresh.list(place)) {
            const std::string path = place + "/" + name;
            if (is_one_of(kAttributes, name)) file(path);
            if (name == "unique_id" && is_on_thunderbolt(place)) file(path);
            const bool deeper = depth > 0 || is_one_of(kFolders, name);
            if (name == "driver" || (depth > 0 && name == "device"))
                device_link(path);
            else if (name == "iommu_group")
                device(link(path).empty() ? path : link(path), 2);
            else if (deeper && depth < 4 && is_folder(path))
                device(path, depth + 1);
        }
    }

    // Collects /sys/bus/…/NAME, its target, and every place on the way up to the root of the bus.
    void entry(const std::string &path)
    {
        std::string place = link(path);
        if (place.empty()) return device(path);
        for (; place.size() > strlen("/sys/devices") && seen_.insert(place).second;
             place = place.substr(0, place.rfind('/')))
            device(place);
    }

private:
    template <size_t count>
    static bool is_one_of(const char *const (&names)[count], const std::string &name)
    {
        for (const char *known : names)
            if (name == known) return true;
        return false;
    }

    // Returns whether the place is on Thunderbolt. There, unique_id is needed to authorize the dock; for a PCI
    // device, it is a serial number.
    static bool is_on_thunderbolt(const std::string &place)
    {
        return place.compare(0, 20, "/sys/bus/thunderbolt") == 0 ||
               place.find("/domain") != place.npos;
    }

    static bool is_folder(const std::string &path)
    {
        struct stat status {};
        return lstat(under_sysroot(path).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    }

    void device_link(const std::string &path)
    {
        const std::string place = link(path);
        if (!place.empty()) tree_.folders.insert(place);
    }

    Tree &tree_;
    std::set<std::string> seen_;
    size_t bytes_ = 0;
};

// Returns the lines of a file with one of the words in front.
std::string lines_with(const std::string &path, std::initializer_list<const char *> words)
{
    std::string kept;
    for (const std::string &line : lines_of(RecordedRoot().text(path).value_or("")))
        for (const char *word : words)
            if (line.compare(0, strlen(word), word) == 0) kept += line + "\n";
    return kept;
}

// Collects only the inventory's facts about processes, because the arguments may hold secrets.
void collect_processes(const Facts &facts, Collector &collector, Tree &tree)
{
    for (const Card &card : facts.machine.cards)
        for (const yoke_card_process &process : card.processes) {
            if (process.visible != 1) continue;
            const std::string place = format("/proc/%d", process.pid);
            collector.file(place + "/cgroup");
            tree.texts[place + "/comm"] = process.name + std::string("\n");
            tree.texts[place + "/cmdline"] = std::string(process.name) + '\0';
            tree.texts[place + "/status"] = lines_with(place + "/status", {"State:", "Uid:"});
        }
}

// Collects only the line about a container from the first process's environment: the rest may hold secrets.
void collect_container(Tree &tree)
{
    const std::string path = "/proc/1/environ";
    RecordedRoot fresh;
    std::string all = fresh.text(path, 65536).value_or(""), kept;
    std::replace(all.begin(), all.end(), '\0', '\n');
    for (const std::string &entry : lines_of(all))
        if (entry.compare(0, 10, "container=") == 0) kept += entry + '\0';
    if (!kept.empty()) tree.texts[path] = kept;
}

// Returns "name:x:1000:1000:::" of a line of /etc/passwd, which may also hold a password, a person's name and rooms.
// Returns "" for a line with fewer fields.
std::string without_person(const std::string &line)
{
    size_t end[4] = {};
    for (size_t i = 0, from = 0; i < 4; ++i, from = end[i - 1] + 1) {
        end[i] = line.find(':', from);
        if (end[i] == line.npos) return "";
    }
    return line.substr(0, end[0]) + ":x" + line.substr(end[1], end[3] - end[1]) + ":::\n";
}

// Returns the lines of /etc/passwd about root and the users with a process on a card, and no other names.
std::string users_of(const Facts &facts)
{
    RecordedRoot fresh;
    std::string kept;
    for (const std::string &line : lines_of(fresh.text("/etc/passwd").value_or(""))) {
        const std::string user = line.substr(0, line.find(':'));
        bool wanted = user == "root";
        for (const Card &card : facts.machine.cards)
            for (const yoke_card_process &process : card.processes) wanted |= user == process.user;
        if (wanted) kept += without_person(line);
    }
    return kept;
}

}  // namespace

Tree tree_of(const Facts &facts, const RecordedRoot &root)
{
    Tree tree;
    for (const auto &[path, text] : root.texts()) tree.texts[without_links(path)] = text;
    tree.links = root.links();
    for (const std::string &seen : root.present()) {
        const std::string path = without_links(seen);
        struct stat status {};
        if (stat(under_sysroot(path).c_str(), &status) != 0 || tree.texts.count(path)) continue;
        if (S_ISDIR(status.st_mode))
            tree.folders.insert(path);
        else
            tree.texts[path] = "";
    }
    Collector collector(tree);
    for (const char *path : kFiles) collector.file(path);
    for (const char *bus :
         {"/sys/bus/pci/devices", "/sys/bus/thunderbolt/devices", "/sys/class/infiniband"}) {
        RecordedRoot fresh;
        for (const std::string &name : fresh.list(bus))
            collector.entry(std::string(bus) + "/" + name);
        if (fresh.exists(bus)) tree.folders.insert(bus);
    }
    for (const std::string &pci : RecordedRoot().list("/proc/driver/nvidia/gpus"))
        for (const char *name : {"/information", "/power"})
            collector.file("/proc/driver/nvidia/gpus/" + pci + name);
    collect_processes(facts, collector, tree);
    collect_container(tree);
    const std::string users = users_of(facts);
    if (!users.empty()) tree.texts["/etc/passwd"] = users;
    return tree;
}

}  // namespace yoke::doctor
