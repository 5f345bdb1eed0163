// nvml_failure.h: how the management library failed, as facts; its text is made of them once, by text_of().
#pragma once

#include "core/machine/rejection.h"

#include <string>

namespace yoke {

namespace nvml {
// A code in words: "no permission (code 4)".
std::string describe(int code);
}  // namespace nvml

struct NvmlFailure {
    enum class Kind : uint8_t {
        kNone,
        kOtherRoot,   // another root is looked at, and no library is named
        kNoFile,      // what is named is no regular file
        kNoLibrary,   // the loader finds none
        kNoInit,      // what it finds is another library
        kNoThread,    // none could be started to ask it
        kRaised,      // an exception while it was asked
        kNotStarted,  // its start failed, with `code`
        kHung,        // a call did not come back
    };
    Kind kind = Kind::kNone;
    int code = 0;      // NVML's, of kNotStarted
    std::string call;  // that did not come back, "nvmlDeviceGetName"; "" where none was being made
    std::string card;  // for which it was made, by address; "" for the library itself
    double seconds = 0;  // that it was waited for
    bool is_earlier =
        false;  // an earlier snapshot of this process met it, and the library is not asked again
    std::string detail;  // a path, or the words of the loader or the system

    explicit operator bool() const noexcept { return kind != Kind::kNone; }
};

// One sentence with its remedy; "" for no failure. Of a start that failed over versions it names both: the kernel
// module's and the library's, "" for one that is not known.
std::string text_of(const NvmlFailure &failure, const std::string &module,
                    const std::string &library);

// What it says against the cards: CUDA starts as NVML does, and hangs as it does. kNone where CUDA may work all the
// same.
Reason reason_of(const NvmlFailure &failure) noexcept;

}  // namespace yoke
