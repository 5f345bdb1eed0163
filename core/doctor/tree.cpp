#include "core/doctor/tree.h"

#include "core/base/error.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace yoke::doctor {

namespace {

constexpr size_t kMostFiles = 4096, kMostBytes = 16u << 20;

// What a PCI device, a port or a dock tells that an inventory asks for.
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
    "unique_id",
    "authorized",
    "generation",
    "nvm_version",
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
// Folders of a device that hold more of these.
constexpr const char *kFolders[] = {"power", "drm", "infiniband", "ports", "iommu_group"};

constexpr const char *kFiles[] = {
    "/proc/version",
    "/proc/meminfo",
    "/proc/self/cgroup",
    "/proc/1/cgroup",
    "/proc/1/environ",
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
};

// Where the root itself lies, "" for the machine's own.
std::string top_of_root()
{
    char real[4096];
    const char *top = realpath(under_sysroot("/").c_str(), real);
    return top && strcmp(top, "/") != 0 ? top : "";
}

// A file of /sys that was read by way of a link, where it truly lies: the link is recorded as a link.
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
        Root fresh;
        std::string text;
        if (S_ISREG(status.st_mode)) text = fresh.text(path, 65536).value_or("");
        if ((bytes_ += text.size()) <= kMostBytes) tree_.texts[path] = text;
    }

    // A link as it stands, if it stays in the root; where it leads, for more to be collected there.
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

    // A device's attributes, and those of its folders.
    void device(const std::string &place, int depth = 0)
    {
        Root fresh;
        tree_.folders.insert(place);
        for (const std::string &name : fresh.list(place)) {
            const std::string path = place + "/" + name;
            if (is_one_of(kAttributes, name)) file(path);
            const bool deeper = depth > 0 || is_one_of(kFolders, name);
            if (name == "driver" || (depth > 0 && name == "device"))
                device_link(path);
            else if (name == "iommu_group")
                device(link(path).empty() ? path : link(path), 2);
            else if (deeper && depth < 4 && is_folder(path))
                device(path, depth + 1);
        }
    }

    // /sys/bus/…/NAME, the place behind it, and every place on the way up to the root of its bus.
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

void collect_processes(const Facts &facts, Collector &collector)
{
    for (const Card &card : facts.machine.cards)
        for (const yoke_card_process &process : card.processes)
            for (const char *name : {"comm", "cmdline", "status", "cgroup"})
                if (process.visible == 1) collector.file(format("/proc/%d/%s", process.pid, name));
}

// Of /etc/passwd the users that own a process on a card, and root: nobody else's names.
std::string users_of(const Facts &facts)
{
    Root fresh;
    std::string kept;
    for (const std::string &line : lines_of(fresh.text("/etc/passwd").value_or(""))) {
        const std::string user = line.substr(0, line.find(':'));
        bool wanted = user == "root";
        for (const Card &card : facts.machine.cards)
            for (const yoke_card_process &process : card.processes) wanted |= user == process.user;
        if (wanted) kept += line + "\n";
    }
    return kept;
}

}  // namespace

Tree tree_of(const Facts &facts, const Root &root)
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
        Root fresh;
        for (const std::string &name : fresh.list(bus))
            collector.entry(std::string(bus) + "/" + name);
        if (fresh.exists(bus)) tree.folders.insert(bus);
    }
    for (const std::string &pci : Root().list("/proc/driver/nvidia/gpus"))
        for (const char *name : {"/information", "/power"})
            collector.file("/proc/driver/nvidia/gpus/" + pci + name);
    collect_processes(facts, collector);
    const std::string users = users_of(facts);
    if (!users.empty()) tree.texts["/etc/passwd"] = users;
    return tree;
}

}  // namespace yoke::doctor
