#include "kernels/cuda/host/archs.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace yoke::cuda {

namespace {

struct Arch {
    int major, minor;
    char suffix;  // 'a': only this device; 'f': its family; 0: also later devices
    bool machine_code, ptx;
};

// Reads an entry. An invalid entry has no code.
Arch read(std::string_view entry)
{
    int number = 0;
    const auto [end, problem] = std::from_chars(entry.begin(), entry.end(), number);
    if (problem != std::errc() || number < 10) return {};
    entry.remove_prefix(static_cast<size_t>(end - entry.begin()));
    const char suffix = entry.starts_with('a') || entry.starts_with('f') ? entry.front() : '\0';
    if (suffix) entry.remove_prefix(1);
    const bool both = entry.empty();
    return {number / 10, number % 10, suffix, both || entry == "-real",
            both || entry == "-virtual"};
}

// Returns whether the device runs the machine code of an entry.
bool runs(const Arch &arch, int major, int minor)
{
    const bool same = arch.major == major && arch.minor == minor;
    return arch.machine_code &&
           (arch.suffix == 'a' ? same : arch.major == major && minor >= arch.minor);
}

// Returns whether the driver can compile the PTX of an entry for the device.
bool compiles(const Arch &arch, int major, int minor)
{
    if (!arch.ptx) return false;
    if (arch.suffix == 'a') return arch.major == major && arch.minor == minor;
    const bool same_family = arch.major == major && minor >= arch.minor;
    return same_family || (arch.suffix != 'f' && major > arch.major);
}

}  // namespace

int arch_of_code(const char *list, int major, int minor, bool driver_takes_ptx)
{
    int machine_code = 0, ptx = 0;
    while (*list) {
        const size_t length = strcspn(list, ",");
        const Arch arch = read({list, length});
        const int number = arch.major * 10 + arch.minor;
        if (runs(arch, major, minor)) machine_code = std::max(machine_code, number);
        if (driver_takes_ptx && compiles(arch, major, minor)) ptx = std::max(ptx, number);
        list += length;
        list += *list == ',';
    }
    return machine_code ? machine_code : ptx;
}

}  // namespace yoke::cuda
