// spec.h: the one line of text by which a device is asked for: "cuda:1", "auto:min_free=8GiB,exclude=egpu+display".
//
// The language stands in yoke/select.h. This is its only parser: C, Python, Lua, the command line and YOKE_DEVICE all
// come here. What is wrong with a spec is told by key, value, what is allowed and the nearest match.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace yoke {

struct Spec {
    enum class Form { kAuto, kKind, kIndex, kUuid, kPci };
    enum class Same { kAnything, kNvlink, kSwitch, kNuma };
    enum class Fallback { kDefault, kWarn, kSilent, kError };
    enum Exclude : uint32_t {
        kEgpu = 1,
        kDisplay = 2,
        kMig = 4,
        kIntegrated = 8,
        kBusy = 16,
        kLeased = 32
    };

    std::string text;  // as it was given
    Form form = Form::kAuto;
    std::string kind;  // of kKind and kIndex; of kAuto: what kind= says, "" for any
    int32_t index = -1;
    std::string
        prefix;  // of a UUID or a PCI address, lower case; an address begins with its domain

    int32_t count = 0;        // n=; 0: not said
    int64_t min_free = -1;    // bytes
    int64_t min_memory = -1;  // bytes
    int32_t min_cc = -1;      // 90 for 9.0
    double max_util = -1;     // 0 to 1
    std::string name_holds;   // as it was written; cases do not count
    Same same = Same::kAnything;
    bool homogeneous = false;
    uint32_t exclude = 0;  // of Exclude
    double wait = 0;       // seconds
    bool lease = false;
    Fallback fallback = Fallback::kDefault;

    bool is_constrained = false;  // it is kAuto and there is something behind its colon

    // Whether the CPU may stand in where no GPU fits.
    bool allows_cpu() const;
    // What no CPU can meet, "min_cc"; "" where there is no such thing.
    std::string needs_gpu_for() const;
};

// Raises YOKE_E_VALUE.
Spec parse_spec(std::string_view text);

// A spec by which one device is opened: n=2 is refused.
Spec parse_spec_of_one(std::string_view text);

// A PCI address as the core writes it: lower case, a domain of four digits. A beginning of one stays a beginning.
std::string normal_pci(std::string_view address);

}  // namespace yoke
