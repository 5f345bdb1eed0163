#include "core/doctor/facts.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/machine/files.h"
#include "core/machine/nvidia_card.h"

#include <sys/stat.h>
#include <cctype>
#include <cstdlib>

extern char **environ;

namespace yoke::doctor {

namespace {

constexpr const char *kVariables[] = {
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_MPS_PIPE_DIRECTORY",
    "LD_LIBRARY_PATH",
    "NVIDIA_DRIVER_CAPABILITIES",
    "LD_PRELOAD",
    "OMP_NUM_THREADS",
    "CONDA_PREFIX",
    "VIRTUAL_ENV",
    "NCCL_P2P_DISABLE",
    "CUDA_MODULE_LOADING",
};

bool is_of_interest(const std::string &name)
{
    for (const char *known : kVariables)
        if (name == known) return true;
    return name.compare(0, 5, "YOKE_") == 0;
}

void add_variable(std::map<std::string, std::string> &to, const std::string &entry)
{
    const size_t equals = entry.find('=');
    if (equals != entry.npos && is_of_interest(entry.substr(0, equals)))
        to[entry.substr(0, equals)] = entry.substr(equals + 1);
}

void read_variables(RecordedRoot &root, Facts &facts)
{
    for (char **entry = environ; *entry; ++entry) add_variable(facts.variables, *entry);
    std::string start = root.text("/proc/self/environ").value_or("");
    for (char &c : start)
        if (c == '\0') c = '\n';
    for (const std::string &entry : lines_of(start)) add_variable(facts.first_variables, entry);
    std::string kept;  // an environment holds secrets; a recording does not
    for (const auto &[name, value] : facts.first_variables) kept += name + "=" + value + "\n";
    root.note("/proc/self/environ", kept);
    facts.config_problems = config_problems();
    facts.misspelt = misspelt_variables();
    const auto value = [&](const char *name) {
        const auto found = facts.variables.find(name);
        return found == facts.variables.end() ? std::nullopt : std::optional(found->second);
    };
    facts.visible =
        visible_cards(facts.machine, value("CUDA_VISIBLE_DEVICES"), value("CUDA_DEVICE_ORDER"));
}

bool has_only_gpus_off_bus(const Machine &machine)
{
    bool any = false;
    for (const Card &card : machine.cards) {
        if (std::string_view(card.info.vendor) != "nvidia") continue;
        if (!is_off_bus(card.info)) return false;
        any = true;
    }
    return any;
}

void read_modules(RecordedRoot &root, Facts &facts)
{
    for (const std::string &line : lines_of(root.text("/proc/modules").value_or("")))
        facts.modules.insert(line.substr(0, line.find(' ')));
    // The folder also shows a built-in module, or a module hidden from /proc/modules.
    for (const char *name : {"nvidia", "nvidia_uvm", "nvidia_peermem", "nouveau", "nvgpu"})
        if (root.exists(std::string("/sys/module/") + name)) facts.modules.insert(name);
    // On a Jetson, up to Orin, the board's own kernel drives the GPU, whatever the module's name. The entry keeps the
    // doctor from advising the desktop driver, which would make such a board unusable.
    if (has_only_gpus_off_bus(facts.machine)) facts.modules.insert("nvgpu");
    for (const std::string &line : lines_of(root.text("/proc/driver/nvidia/params").value_or(""))) {
        const size_t colon = line.find(':');
        if (colon != line.npos)
            facts.driver_parameters[line.substr(0, colon)] = trimmed(line.substr(colon + 1));
    }
    facts.kernel = root.line("/proc/sys/kernel/osrelease");
    facts.is_jetson = root.exists("/etc/nv_tegra_release");
    facts.has_windows_gpu = root.exists("/dev/dxg");
    // By the table of SMBIOS: portable, laptop, notebook, hand held, sub notebook, tablet, convertible, detachable.
    const int chassis = atoi(root.line("/sys/class/dmi/id/chassis_type").c_str());
    for (const int portable : {8, 9, 10, 11, 14, 30, 31, 32})
        facts.is_laptop |= chassis == portable;
    // "580.82.07" is a version; "kernel-6.1.0-39-amd64-x86_64" in the same folder is a link to a build.
    for (const char *flavor : {"nvidia", "nvidia-current", "nvidia-open"})
        for (const std::string &version : root.list(std::string("/var/lib/dkms/") + flavor))
            if (isdigit(static_cast<unsigned char>(version[0]))) facts.dkms.push_back(version);
    const std::string secure =
        root.text("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c")
            .value_or("");
    facts.secure_boot = !secure.empty() && (secure.back() == 1 || secure.back() == '1');
}

void read_nodes(RecordedRoot &root, Facts &facts)
{
    for (const std::string &name : root.list("/dev"))
        if (name.compare(0, 6, "nvidia") == 0 && name != "nvidia-caps")
            if (const auto node = root.node("/dev/" + name)) facts.nodes["/dev/" + name] = *node;
}

bool is_number(const std::string &text)
{
    for (const char c : text)
        if (!isdigit(static_cast<unsigned char>(c))) return false;
    return !text.empty();
}

// Finds processes that wait in the kernel and cannot be killed, such as for a hanging driver. Their line in /proc is
// "12 (a name) D 1 …".
void read_stuck(RecordedRoot &root, Facts &facts)
{
    for (const std::string &pid : root.list("/proc")) {
        if (!is_number(pid)) continue;
        // A path that comes and goes is recorded only if it matters.
        RecordedRoot fleeting;
        const std::string stat = fleeting.text("/proc/" + pid + "/stat", 1024).value_or("");
        const size_t open = stat.find('('), close = stat.rfind(')');
        if (open == stat.npos || close == stat.npos || close + 2 >= stat.size()) continue;
        if (stat[close + 2] != 'D') continue;
        root.text("/proc/" + pid + "/stat", 1024);
        facts.stuck.push_back({atoi(pid.c_str()), stat.substr(open + 1, close - open - 1)});
    }
}

// Raises YOKE_E_IO if YOKE_SYSROOT names no folder. A missing root looks like an empty machine, and every answer
// about it would be wrong.
void need_root()
{
    struct stat status {};
    if (!RecordedRoot::is_foreign()) return;
    if (stat(under_sysroot("/").c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return;
    fail(
        YOKE_E_IO,
        "doctor: YOKE_SYSROOT is '%s', which is not a folder; name the root of a machine, such as DIR/root of a recording, or unset it",
        config("YOKE_SYSROOT"));
}

}  // namespace

std::string Facts::variable(const std::string &name) const
{
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
}

const LibraryCopy *Facts::library(const std::string &name, int major) const
{
    for (const bool mapped : {true, false})
        for (const LibraryCopy &copy : libraries)
            if (copy.name == name && copy.mapped == mapped && (!major || copy.major() == major))
                return &copy;
    return nullptr;
}

const LibraryCopy *Facts::nccl() const
{
    const LibraryCopy *right = library("nccl", 2);
    return right ? right : library("nccl");
}

Facts read_facts(RecordedRoot &root, Machine machine)
{
    need_root();
    Facts facts;
    facts.machine = std::move(machine);
    read_variables(root, facts);
    read_modules(root, facts);
    read_nodes(root, facts);
    read_stuck(root, facts);
    read_routes(root, facts);
    read_docks(root, facts);
    read_libraries(root, facts);
    read_host(root, facts);
    facts.log = root.kernel_log();
    return facts;
}

}  // namespace yoke::doctor
