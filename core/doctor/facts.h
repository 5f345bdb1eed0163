// facts.h: all facts for the doctor's checks, read once, before the first check.
//
// A check is a function of the facts alone, so a scenario or a test can state any machine. Unknown facts are absent:
// "", -1, NaN or nullopt.
#pragma once

#include "core/base/config.h"
#include "core/doctor/recorded_root.h"
#include "core/machine/build.h"
#include "core/machine/inventory.h"
#include "core/machine/visibility.h"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace yoke::doctor {

// File of a CUDA library: loaded in this process, or found by the loader's rules.
struct LibraryCopy {
    std::string name;  // "cublasLt"
    std::string path;  // "/usr/local/cuda/lib64/libcublasLt.so.13"
    std::string
        version;  // end of the file's name: "13.0.0.19", at least the major number; "" if missing
    bool mapped = false;

    int major() const { return atoi(version.c_str()); }
    std::string folder() const { return path.substr(0, path.rfind('/')); }
};

// A device on the Thunderbolt or USB4 bus, hosts aside.
struct Dock {
    std::string id;  // "0-1"
    std::string name, uuid, firmware;
    std::string authorized;     // "0", "1", "2"
    std::string security;       // security of the domain: "user"
    std::string update_status;  // status of the last firmware update: "0x0"
    int generation = 0;         // 3: Thunderbolt 3, 4: USB4
    double speed = -1;          // Gbit/s for each pair of wires
    int width = -1;             // number of pairs
    bool safe_mode = false;     // the firmware is unreadable: the dock waits for new firmware
};

// IOMMU group of a device.
struct IommuGroup {
    std::string number;  // "17"
    std::string type;    // "DMA", "DMA-FQ": addresses are translated; "identity": not translated
};

struct StuckProcess {
    int pid;
    std::string name;
};

// Measurements of a probe on one card. Rates are in bytes per second; NaN means not measured.
struct ProbeResult {
    static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    double host_to_device = kNone, device_to_host = kNone, pageable = kNone, launch = kNone;
    std::map<int, double> peers;  // by card; 0: wrong bytes arrived; NaN: not measured
    std::string smoke;            // "ok", or the wrong result; "": not tried
    std::string broken;           // a crash, a hang, wrong bytes: the card may be at fault
    std::string failed;           // an error named by the driver or a library
    std::string untried;          // why the card could not be tried, without blame
    std::string unmeasured;       // why copies to another card were not measured
};

// Host memory available to the process; bytes, -1: unknown, or no limit.
struct HostMemory {
    long long total = -1, available = -1;     // memory of the machine
    long long group = -1, group_used = -1;    // control group that leaves the least memory
    std::string group_file;                   // file with the group's limit
    long long address_space = -1, data = -1;  // RLIMIT_AS, RLIMIT_DATA
};

struct LeaseFolder {
    std::string path;
    bool named = false;                                     // by YOKE_LEASE_DIR
    bool exists = false, writable = false, shared = false;  // shared: visible to other containers
    bool sticky = true;  // users cannot remove other users' files, or only one user may write
};

struct Facts {
    Machine machine;
    Visible visible;

    // Environment: now, and at the start of the process.
    std::map<std::string, std::string> variables, first_variables;
    std::vector<ConfigProblem> config_problems;  // unreadable values of Yoke's own variables
    std::vector<std::pair<std::string, std::string>> misspelt;  // unknown names

    // Kernel and driver.
    std::set<std::string> modules;
    std::map<std::string, std::string> driver_parameters;
    std::string kernel;
    bool has_windows_gpu = false;  // /dev/dxg, in Linux within Windows
    bool is_jetson = false;        // driver and CUDA come with the board's own system
    bool is_laptop = false;        // also any other machine with fixed cards
    bool secure_boot = false;
    std::vector<std::string> dkms;
    std::map<std::string, RecordedRoot::Node> nodes;  // /dev/nvidia*
    std::optional<std::string> log;
    std::vector<StuckProcess> stuck;
    std::map<std::string, IommuGroup> iommu;  // by PCI address, of cards and networks
    std::map<std::string, int> acs;           // see acs_control(); by PCI address, of bridges
    std::vector<Dock> docks;

    // Libraries.
    std::vector<LibraryCopy> libraries;
    std::string nccl_version;   // version of the chosen copy, "2.27.7", or just "2"
    std::string nccl_cuda;      // CUDA version of NCCL's build, "12.9"
    std::string cudnn_version;  // version of the chosen copy, "9.19.0.56" or just "9"
    int cudnn_cuda = 0;         // major version of cuDNN's CUDA; 0: unknown
    Build build;
    std::string runfile;                          // a trace of NVIDIA's own installer
    std::map<std::string, std::string> packages;  // packages of the driver, with versions

    // Host.
    std::string distribution, distribution_like;
    std::string mount_options;  // options of /dev/shm
    double quota = 0;           // processors granted, 0: no limit
    int processors = 1;
    long long shared_memory = -1,
              locked_memory = -1;  // bytes; locked: -1 is no limit, -2 not known
    HostMemory memory;
    bool administrator = false;
    LeaseFolder leases;

    bool cuda_opened = false;           // this process uses CUDA by way of this library
    std::map<int, ProbeResult> probes;  // by card
    std::string no_probes;              // reason for missing probes

    std::string variable(const std::string &name) const;
    bool is_set(const std::string &name) const { return variables.count(name) != 0; }
    bool in_container() const { return !machine.container.empty(); }
    // Returns the chosen copy: the first loaded copy, else the first copy found, else nullptr. `major` chooses a
    // major version if not 0, because a process may hold several.
    const LibraryCopy *library(const std::string &name, int major = 0) const;
    // Returns the copy of NCCL 2, else a copy of another version.
    const LibraryCopy *nccl() const;
};

// Reads all facts except the probes.
Facts read_facts(RecordedRoot &root, Machine machine);

// Read a part of the facts each, for read_facts().
void read_libraries(RecordedRoot &root, Facts &facts);
void read_host(RecordedRoot &root, Facts &facts);
void read_docks(RecordedRoot &root, Facts &facts);
void read_routes(RecordedRoot &root, Facts &facts);

// Returns the control bits of ACS in the PCI configuration of a bridge; 0 if the bridge has no ACS. Returns -1 if the
// kernel shows this user the first bytes alone.
int acs_control(const std::string &configuration);

}  // namespace yoke::doctor
