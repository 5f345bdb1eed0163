#include "kernels/cuda/host/archs.h"

#include <charconv>
#include <cstring>
#include <string_view>

namespace yoke::cuda {

namespace {

struct Arch {
    int major, minor;
    char suffix;  // 'a': this device alone; 'f': its family; 0: later ones too
    bool machine_code, ptx;
};

// Reads one entry. What is none has no code in it.
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

bool serves(const Arch &arch, int major, int minor, bool driver_takes_ptx)
{
    const bool takes = arch.machine_code || (arch.ptx && driver_takes_ptx);
    if (arch.suffix == 'a') return takes && arch.major == major && arch.minor == minor;
    const bool same_family = arch.major == major && minor >= arch.minor;
    if (arch.suffix == 'f') return takes && same_family;
    const bool later = major > arch.major || same_family;
    return (arch.machine_code && same_family) || (arch.ptx && later && driver_takes_ptx);
}

}  // namespace

bool archs_serve(const char *list, int major, int minor, bool driver_takes_ptx)
{
    while (*list) {
        const size_t length = strcspn(list, ",");
        if (serves(read({list, length}), major, minor, driver_takes_ptx)) return true;
        list += length;
        list += *list == ',';
    }
    return false;
}

}  // namespace yoke::cuda
