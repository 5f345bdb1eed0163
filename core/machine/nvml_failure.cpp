#include "core/machine/nvml_failure.h"

#include "core/base/error.h"
#include "core/machine/nvml_abi.h"

namespace yoke {

std::string nvml::describe(int code)
{
    constexpr struct {
        int code;
        const char *text;
    } kCodes[] = {
        {1, "the library is not started"},
        {2, "an argument is refused"},
        {3, "not supported"},
        {4, "no permission"},
        {6, "not found"},
        {8, "the card's power cables are not connected"},
        {9, "the driver is not loaded"},
        {10, "the driver ran into a timeout"},
        {11, "the kernel found a fault with the card's interrupts"},
        {12, "a library of the driver is missing"},
        {14, "the card's configuration store is damaged"},
        {15, "the card has fallen off the bus"},
        {16, "the card needs a reset"},
        {17, "the operating system refused a call"},
        {18, "kernel module and driver library have different versions"},
        {19, "the card is in use"},
        {20, "out of memory"},
        {25, "a struct's version is refused"},
        {28, "no GPU was found"},
        {999, "an internal error of the driver"},
    };
    for (const auto &known : kCodes)
        if (known.code == code) return format("%s (code %d)", known.text, code);
    return format("code %d", code);
}

namespace {

using Kind = NvmlFailure::Kind;

std::string remedy_of_start(const NvmlFailure &failure, const std::string &module,
                            const std::string &library)
{
    const auto known = [](const std::string &version) {
        return version.empty() ? "unknown" : version.c_str();
    };
    switch (failure.code) {
        case nvml::kDriverNotLoaded:
            return "; modprobe nvidia, or install the NVIDIA driver";
        case nvml::kVersionMismatch:
            return format(
                " (kernel module %s, library %s); restart the machine, or unload and load the module",
                known(module), known(library));
        case nvml::kNoPermission:
            return "; give this user access to /dev/nvidiactl and /dev/nvidia*";
        case nvml::kOperatingSystem:
            return "; in a container, create the container again (its devices were removed), or use CDI";
        case nvml::kLost:
            return "; restart the machine, and see dmesg for Xid 79";
        default:
            return "; see dmesg | grep -i nvrm";
    }
}

std::string text_of_hang(const NvmlFailure &failure)
{
    const std::string what = failure.call.empty() ? "the management library" : failure.call;
    const std::string card = failure.card.empty() ? "" : " for " + failure.card;
    return format(
        "%s%s did not answer within %g s: the driver hangs; look for tasks in state D and for Xid in dmesg, and restart the machine%s",
        what.c_str(), card.c_str(), failure.seconds,
        failure.is_earlier ? "; this process does not call NVML again" : "");
}

Reason reason_of_start(int code)
{
    switch (code) {
        case nvml::kDriverNotLoaded:
            return Reason::kModuleNotLoaded;
        case nvml::kVersionMismatch:
            return Reason::kVersionsDiffer;
        case nvml::kNoPermission:
            return Reason::kNoPermission;
        case nvml::kOperatingSystem:
            return Reason::kTakenFromContainer;
        case nvml::kLost:
            return Reason::kLostAtStart;
        default:
            return Reason::kNotStarted;
    }
}

}  // namespace

std::string text_of(const NvmlFailure &failure, const std::string &module,
                    const std::string &library)
{
    switch (failure.kind) {
        case Kind::kNone:
            return "";
        case Kind::kOtherRoot:
            return "YOKE_SYSROOT names another root, but YOKE_NVML_PATH names no library";
        case Kind::kNoFile:
            return failure.detail + " is not a management library: it is not a regular file";
        case Kind::kNoLibrary:
            return failure.detail +
                   "; it comes with the NVIDIA driver (in a container: NVIDIA_DRIVER_CAPABILITIES with 'utility')";
        case Kind::kNoInit:
            return failure.detail + " is not a management library: it has no nvmlInit";
        case Kind::kNoThread:
            return "the system cannot start a thread that calls NVML: " + failure.detail +
                   "; see ulimit -u and pids.max";
        case Kind::kRaised:
            return failure.detail;
        case Kind::kNotStarted:
            return "NVML does not start: " + nvml::describe(failure.code) +
                   remedy_of_start(failure, module, library);
        case Kind::kHung:
            return text_of_hang(failure);
    }
    return "";
}

Reason reason_of(const NvmlFailure &failure) noexcept
{
    if (failure.kind == Kind::kHung) return Reason::kHangs;
    return failure.kind == Kind::kNotStarted ? reason_of_start(failure.code) : Reason::kNone;
}

}  // namespace yoke
