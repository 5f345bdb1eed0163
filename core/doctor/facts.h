// facts.h: everything the doctor's checks look at, read once, before the first of them.
//
// A check is a function of this alone, so that a scenario or a test can state any machine. What could not be read is
// absent: "", -1, NaN or nullopt.
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

// A file of one of CUDA's libraries: loaded in this process, or what the loader would find.
struct LibraryCopy {
    std::string name;  // "cublasLt"
    std::string path;  // "/usr/local/cuda/lib64/libcublasLt.so.13"
    std::string
        version;  // what its name ends in: "13.0.0.19", at least the major number; "" if none
    bool mapped = false;

    int major() const { return atoi(version.c_str()); }
    std::string folder() const { return path.substr(0, path.rfind('/')); }
};

// A device on the Thunderbolt or USB4 bus, hosts aside.
struct Dock {
    std::string id;  // "0-1"
    std::string name, uuid, firmware;
    std::string authorized;     // "0", "1", "2"
    std::string security;       // of its domain: "user"
    std::string update_status;  // of its last firmware update: "0x0"
    int generation = 0;         // 3: Thunderbolt 3, 4: USB4
    double speed = -1;          // Gbit/s, of each of its pairs of wires
    int width = -1;             // how many of them
    bool safe_mode = false;     // its firmware cannot be read: it waits for a new one
};

// The group of devices that an IOMMU holds together with one device.
struct IommuGroup {
    std::string number;  // "17"
    std::string type;    // "DMA", "DMA-FQ": addresses are translated; "identity": they are not
};

struct StuckProcess {
    int pid;
    std::string name;
};

// What a probe measured on one card. Rates in bytes per second, NaN for what was not measured.
struct ProbeResult {
    static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    double host_to_device = kNone, device_to_host = kNone, pageable = kNone, launch = kNone;
    std::map<int, double> peers;  // by card; 0: wrong bytes arrived; NaN: not measured
    std::string smoke;            // "ok", or what its result was; "": not tried
    std::string broken;           // a crash, a hang, wrong bytes: the card may be at fault
    std::string failed;           // an error that the driver or a library named
    std::string untried;          // why it could not be tried, which blames nobody
    std::string unmeasured;       // why copies to another card were not measured
};

// What of the host's memory the process may have; bytes, -1: not known, or no limit.
struct HostMemory {
    long long total = -1, available = -1;     // of the machine
    long long group = -1, group_used = -1;    // of the control group that leaves the least
    std::string group_file;                   // in which its limit stands
    long long address_space = -1, data = -1;  // RLIMIT_AS, RLIMIT_DATA
};

struct LeaseFolder {
    std::string path;
    bool named = false;                                     // by YOKE_LEASE_DIR
    bool exists = false, writable = false, shared = false;  // shared: other containers see it
    bool sticky = true;  // nobody may remove what is another user's, or only one user may write
};

struct Facts {
    Machine machine;
    Visible visible;

    // Of the environment: now, and as the process was started.
    std::map<std::string, std::string> variables, first_variables;
    std::vector<ConfigProblem> config_problems;  // of Yoke's own, those that cannot be read
    std::vector<std::pair<std::string, std::string>> misspelt;  // and those that are none

    // Of the kernel and its driver.
    std::set<std::string> modules;
    std::map<std::string, std::string> driver_parameters;
    std::string kernel;
    bool has_windows_gpu = false;  // /dev/dxg, in Linux within Windows
    bool is_jetson = false;        // whose driver and CUDA come with the board's own system
    bool is_laptop = false;        // or something else whose cards nobody can take out
    bool secure_boot = false;
    std::vector<std::string> dkms;
    std::map<std::string, RecordedRoot::Node> nodes;  // /dev/nvidia*
    std::optional<std::string> log;
    std::vector<StuckProcess> stuck;
    std::map<std::string, IommuGroup> iommu;  // by PCI address, of cards and networks
    std::map<std::string, int> acs;           // see acs_control(); by PCI address, of bridges
    std::vector<Dock> docks;

    // Of libraries.
    std::vector<LibraryCopy> libraries;
    std::string nccl_version;   // of the copy that counts, "2.27.7", or just "2"
    std::string nccl_cuda;      // what NCCL was built with, "12.9"
    std::string cudnn_version;  // of the copy that counts, "9.19.0.56" or just "9"
    int cudnn_cuda = 0;         // the major version of CUDA that it is for; 0: not known
    Build build;
    std::string runfile;                          // a trace of NVIDIA's own installer
    std::map<std::string, std::string> packages;  // the driver's, with their versions

    // Of the host.
    std::string distribution, distribution_like;
    std::string mount_options;  // of /dev/shm
    double quota = 0;           // processors granted, 0: no limit
    int processors = 1;
    long long shared_memory = -1,
              locked_memory = -1;  // bytes; locked: -1 is no limit, -2 not known
    HostMemory memory;
    bool administrator = false;
    LeaseFolder leases;

    bool cuda_opened = false;           // this process uses CUDA by way of this library
    std::map<int, ProbeResult> probes;  // by card
    std::string no_probes;              // why there are none

    std::string variable(const std::string &name) const;
    bool is_set(const std::string &name) const { return variables.count(name) != 0; }
    bool in_container() const { return !machine.container.empty(); }
    // The copy that counts: the first that is loaded, else the first that would be found. Of one major version where
    // that is not 0: a process may hold several.
    const LibraryCopy *library(const std::string &name, int major = 0) const;
    // Returns the copy of NCCL 2, else one of another version.
    const LibraryCopy *nccl() const;
};

// Reads everything but the probes.
Facts read_facts(RecordedRoot &root, Machine machine);

// Parts of it.
void read_libraries(RecordedRoot &root, Facts &facts);
void read_host(RecordedRoot &root, Facts &facts);
void read_docks(RecordedRoot &root, Facts &facts);
void read_routes(RecordedRoot &root, Facts &facts);

// Returns the control bits of ACS in the PCI configuration of a bridge, 0 where it has no ACS. -1: the kernel shows
// this user the first bytes alone.
int acs_control(const std::string &configuration);

}  // namespace yoke::doctor
