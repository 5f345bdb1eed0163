#include "core/machine/proc.h"

#include "core/base/error.h"
#include "core/machine/sysfs.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace yoke {

namespace {

// Returns the name of the container engine, of several the outermost; "" outside of containers.
const char *engine_of(const Root &root)
{
    if (root.has("/.dockerenv")) return "docker";
    if (root.has("/run/.containerenv")) return "podman";
    const std::string cgroups = root.text("/proc/self/cgroup") + "\n" + root.text("/proc/1/cgroup");
    constexpr const char *kMarks[][2] = {
        {"kubepods", "kubernetes"},   {"cri-containerd", "containerd"},
        {"containerd", "containerd"}, {"docker", "docker"},
        {"libpod", "podman"},         {"lxc", "lxc"}};
    // A shell of docker.service is in no container.
    if (!container_of(cgroups).empty())
        for (const auto &mark : kMarks)
            if (cgroups.find(mark[0]) != std::string::npos) return mark[1];
    const std::string environment = root.text("/proc/1/environ", 65536);
    if (environment.find("container=lxc") != std::string::npos) return "lxc";
    return environment.find("container=") != std::string::npos ? "container" : "";
}

std::string hypervisor_of(const Root &root)
{
    const std::string kernel = root.text("/proc/version");
    if (kernel.find("icrosoft") != std::string::npos) return "wsl";
    const std::string vendor = root.text("/sys/class/dmi/id/sys_vendor");
    const std::string product = root.text("/sys/class/dmi/id/product_name");
    const bool hypervised =
        field_of(root.text("/proc/cpuinfo", 16384), "flags").find("hypervisor") !=
        std::string::npos;
    constexpr const char *kMakers[][2] = {{"QEMU", "kvm"},           {"VMware", "vmware"},
                                          {"innotek", "virtualbox"}, {"Xen", "xen"},
                                          {"Amazon EC2", "amazon"},  {"Google", "google"},
                                          {"Microsoft", "hyper-v"},  {"OpenStack", "kvm"}};
    for (const auto &maker : kMakers) {
        const bool named = vendor.find(maker[0]) != std::string::npos;
        // The other three makers also sell machines that are not virtual.
        const bool always = std::string_view("QEMU VMware innotek Xen OpenStack").find(maker[0]) !=
                            std::string_view::npos;
        if (named && (always || hypervised)) return maker[1];
    }
    if (product.find("KVM") != std::string::npos) return "kvm";
    if (root.text("/sys/hypervisor/type", 64) == "xen") return "xen";
    return hypervised ? "unknown" : "";
}

bool is_hex(std::string_view text)
{
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return isxdigit(static_cast<unsigned char>(c)); });
}

// Returns whether the process is a stranger. In a PID namespace of its own, a number of the host may belong to
// another process. A process without files of the driver is a stranger, if its files are readable.
bool is_stranger(const Folder &process)
{
    const Folder files(process, "fd");
    const std::vector<std::string> names = files.names();
    if (names.empty()) return false;
    return std::none_of(names.begin(), names.end(), [&](const std::string &name) {
        return files.link(name).rfind("/dev/nvidia", 0) == 0;
    });
}

struct Place {
    Folder proc;
    std::string passwd;
    bool own_namespace;  // namespace of process numbers
};

// Returns a process's name by its argv[0] and the kernel's short name. A program with a title of its own has one text
// with blanks in place of arguments, and parts may be secret: "job --key=...". Then only the kernel's name counts.
std::string name_of_process(const std::string &program, const std::string &known)
{
    constexpr const char *kBlanks = " \t\r\n";
    const size_t blank = program.find_first_of(kBlanks);
    if (blank == program.npos) return program.empty() ? known : base_name(program);
    constexpr size_t kLongest = 15;  // characters kept by the kernel
    for (const std::string &name : {base_name(program), base_name(program.substr(0, blank))}) {
        const bool is_cut = known.size() == kLongest && name.compare(0, kLongest, known) == 0;
        if ((name == known || is_cut) && name.find_first_of(kBlanks) == name.npos) return name;
    }
    return known.empty() ? base_name(program.substr(0, blank)) : known;
}

void read_process(const Place &place, yoke_card_process &process)
{
    const Folder folder(place.proc, format("%d", process.pid));
    process.visible = folder.is_open() && !(place.own_namespace && is_stranger(folder));
    if (!process.visible) return;
    const std::string status = folder.text("status");
    // If a process waits in the kernel, a read of its arguments may wait as long.
    const bool waits = field_of(status, "State").rfind("D", 0) == 0;
    const std::string command = waits ? "" : folder.text("cmdline", 512);
    const std::string program = command.substr(0, command.find('\0'));
    // The process's user chooses these texts, so they must not steer a terminal or end a line.
    put(process.name, printable(name_of_process(program, folder.text("comm", 64))));
    const std::string user = field_of(status, "Uid");
    if (!user.empty()) put(process.user, printable(user_name(place.passwd, atoll(user.c_str()))));
    put(process.container, printable(container_of(folder.text("cgroup"))));
}

void sum_processes(Card &card)
{
    yoke_card_info &info = card.info;
    if (info.process_count < 0) return;
    int64_t seen = 0;
    info.hidden_processes = 0;
    for (const yoke_card_process &process : card.processes) {
        info.hidden_processes += !process.visible;
        if (process.visible && process.memory_used > 0) seen += process.memory_used;
        const bool server = std::string_view(process.name).find("nvidia-cuda-mps") == 0;
        if (server) info.mps = 1;
    }
    // Programs of every sort use the host's memory.
    if (info.memory_used < 0 || info.kind == YOKE_CARD_INTEGRATED) return;
    info.hidden_memory = std::max<int64_t>(0, info.memory_used - seen);
    // If the driver does not report its own share (before 510), this much may be the driver's.
    constexpr int64_t kDriverShare = int64_t{1} << 30;
    if (info.memory_reserved < 0 && info.hidden_memory <= kDriverShare) info.hidden_memory = 0;
}

}  // namespace

void put_host_memory(const Root &root, yoke_card_info &info)
{
    const std::string memory = root.text("/proc/meminfo");
    const int64_t total = atoll(field_of(memory, "MemTotal").c_str()) * 1024;
    const int64_t free = atoll(field_of(memory, "MemAvailable").c_str()) * 1024;
    if (total <= 0) return;
    info.memory_total = total;
    info.memory_free = free;
    info.memory_used = total - free;
}

void read_place(const Root &root, Machine &machine)
{
    machine.container = engine_of(root);
    machine.virtual_machine = hypervisor_of(root);
}

void read_processes(const Root &root, Machine &machine)
{
    bool any = false;
    for (const Card &card : machine.cards) any |= !card.processes.empty();
    Place place{root.folder("/proc"), any ? root.text("/etc/passwd", 65536) : "", false};
    // The first namespace has this number on every Linux.
    const std::string space = place.proc.link("self/ns/pid");
    place.own_namespace = !space.empty() && space != "pid:[4026531836]";
    for (Card &card : machine.cards) {
        for (yoke_card_process &process : card.processes) read_process(place, process);
        sum_processes(card);
    }
}

// Returns "container-3", the placeholder of an id in a redacted recording; "" if there is no placeholder.
static std::string placeholder_of(std::string_view cgroups)
{
    constexpr std::string_view kMark = "container-";
    const size_t at = cgroups.rfind(kMark);
    if (at == std::string_view::npos) return "";
    const size_t end =
        std::min(cgroups.find_first_not_of("0123456789", at + kMark.size()), cgroups.size());
    return end == at + kMark.size() ? "" : std::string(cgroups.substr(at, end - at));
}

std::string container_of(std::string_view cgroups)
{
    // Docker, containerd, podman and Kubernetes name a container by 64 hex digits; the innermost is the last.
    constexpr size_t kLength = 64;
    std::string found;
    for (size_t i = 0; i + kLength <= cgroups.size(); ++i) {
        const std::string_view word = cgroups.substr(i, kLength);
        const bool ends = i + kLength == cgroups.size() ||
                          !isxdigit(static_cast<unsigned char>(cgroups[i + kLength]));
        if (!is_hex(word)) continue;
        if (ends) found = word;
        i += kLength - 1;
    }
    if (found.empty()) found = placeholder_of(cgroups);
    if (!found.empty()) return found;
    for (const std::string_view mark : {"/lxc.payload.", "/lxc/", "/lxc.monitor."}) {
        const size_t at = cgroups.find(mark);
        if (at == std::string_view::npos) continue;
        const std::string_view rest = cgroups.substr(at + mark.size());
        return std::string(rest.substr(0, rest.find_first_of("/\n")));
    }
    return "";
}

std::string user_name(std::string_view passwd, int64_t uid)
{
    // Not getpwuid, which may ask a directory server, load libraries, and wait.
    const std::string number = format("%lld", static_cast<long long>(uid));
    while (!passwd.empty()) {
        const std::string_view line = passwd.substr(0, passwd.find('\n'));
        passwd.remove_prefix(std::min(passwd.size(), line.size() + 1));
        const size_t name = line.find(':');
        if (name == std::string_view::npos) continue;
        const size_t password = line.find(':', name + 1);
        if (password == std::string_view::npos) continue;
        const std::string_view rest = line.substr(password + 1);
        if (rest.substr(0, rest.find(':')) == number) return std::string(line.substr(0, name));
    }
    return number;
}

}  // namespace yoke
