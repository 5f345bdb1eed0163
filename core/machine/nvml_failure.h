// nvml_failure.h: the failure of the management library, as facts; text_of() turns them into words once.
#pragma once

#include "core/machine/rejection.h"

#include <string>

namespace yoke {

namespace nvml {
// Returns a code of NVML in words: "no permission (code 4)".
std::string describe(int code);
}  // namespace nvml

struct NvmlFailure {
    enum class Kind : uint8_t {
        kNone,
        kOtherRoot,   // another root is looked at, and no library is named
        kNoFile,      // the path is no regular file
        kNoLibrary,   // the loader finds no library
        kNoInit,      // the file found is another library
        kNoThread,    // no thread could be started
        kRaised,      // an exception during the questions
        kNotStarted,  // failed start, with `code`
        kHung,        // a call did not come back
    };
    Kind kind = Kind::kNone;
    int code = 0;        // NVML's error code, with kNotStarted
    std::string call;    // the hanging call, "nvmlDeviceGetName"; "" for none
    std::string card;    // address of the call's card; "" for the library itself
    double seconds = 0;  // length of the wait
    bool is_earlier =
        false;  // an earlier snapshot of this process met it, and the library is not asked again
    std::string detail;  // a path, or the words of the loader or the system

    explicit operator bool() const noexcept { return kind != Kind::kNone; }
};

// Returns the failure in one sentence with its remedy; "" for no failure. If the start failed because versions
// differ, the text names both versions: the kernel module's and the library's, "" if unknown.
std::string text_of(const NvmlFailure &failure, const std::string &module,
                    const std::string &library);

// Returns the reason against the cards, because CUDA starts and hangs like NVML. Returns kNone if CUDA may work all
// the same.
Reason reason_of(const NvmlFailure &failure) noexcept;

}  // namespace yoke
