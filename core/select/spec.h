// spec.h: the line of text that asks for a device: "cuda:1", "auto:min_free=8GiB,exclude=egpu+display".
//
// The language is described in yoke/select.h. This is the only parser: C, Python, Lua, the command line and
// YOKE_DEVICE all use it. An error gives key, value, allowed values and the nearest match.
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

    std::string text;  // the given text
    Form form = Form::kAuto;
    std::string kind;  // kind of kKind and kIndex; for kAuto: value of kind=, "" for any
    int32_t index = -1;
    std::string prefix;  // lower-case UUID or PCI address; an address begins with its domain

    int32_t count = 0;        // n=; 0: not said
    int64_t min_free = -1;    // bytes
    int64_t min_memory = -1;  // bytes
    int32_t min_cc = -1;      // 90 for 9.0
    double max_util = -1;     // 0 to 1
    std::string name_holds;   // unchanged; case does not count
    Same same = Same::kAnything;
    bool homogeneous = false;
    uint32_t exclude = 0;  // bits of Exclude
    double wait = 0;       // seconds
    bool lease = false;
    Fallback fallback = Fallback::kDefault;

    bool is_constrained = false;  // kAuto with constraints after the colon

    // Returns whether the CPU may serve if no GPU fits.
    bool allows_cpu() const;
    // Returns a constraint that no CPU can meet, "min_cc"; "" if there is none.
    std::string needs_gpu_for() const;
};

// Returns the spec read from a text. Raises YOKE_E_VALUE for any other text.
Spec parse_spec(std::string_view text);

// Returns the spec of one device read from a text. Raises YOKE_E_VALUE also for n=2 or more.
Spec parse_spec_of_one(std::string_view text);

// Returns a PCI address in the core's form: lower case, a domain of four digits. The beginning of an address stays a
// beginning.
std::string normal_pci(std::string_view address);

}  // namespace yoke
