#include "kernels/cuda/host/archs.h"

#include <cstdlib>
#include <cstring>

namespace yoke::cuda {

namespace {

struct Arch {
    int major, minor;
    char suffix;  // 'a': this device alone; 'f': its family; 0: later ones too
    bool machine_code, ptx;
};

// Reads one entry, of `length` characters.
Arch read(const char *entry, size_t length)
{
    char *rest = nullptr;
    const long number = strtol(entry, &rest, 10);
    const char suffix = *rest == 'a' || *rest == 'f' ? *rest++ : '\0';
    const char *end = entry + length;
    const auto ends_with = [&](const char *kind) {
        return static_cast<size_t>(end - rest) == strlen(kind) &&
               !strncmp(rest, kind, strlen(kind));
    };
    return {static_cast<int>(number / 10), static_cast<int>(number % 10), suffix,
            !ends_with("-virtual"), !ends_with("-real")};
}

bool serves(const Arch &arch, int major, int minor, bool driver_takes_ptx)
{
    if (arch.suffix == 'a') return arch.major == major && arch.minor == minor;
    const bool same_family = arch.major == major && minor >= arch.minor;
    if (arch.suffix == 'f') return same_family;
    const bool later = major > arch.major || same_family;
    return (arch.machine_code && same_family) || (arch.ptx && later && driver_takes_ptx);
}

}  // namespace

bool archs_serve(const char *list, int major, int minor, bool driver_takes_ptx)
{
    while (*list) {
        const size_t length = strcspn(list, ",");
        if (serves(read(list, length), major, minor, driver_takes_ptx)) return true;
        list += length;
        list += *list == ',';
    }
    return false;
}

}  // namespace yoke::cuda
