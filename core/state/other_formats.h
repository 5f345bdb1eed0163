// other_formats.h: recognizes other formats by a file's first bytes, with advice how to make a state of the file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace yoke {

struct OtherFormat {
    const char *name;    // "a checkpoint of PyTorch (torch.save)"
    const char *advice;  // how to get a state; FILE is the named file, NEW a file to make
};

// First bytes of a file, enough to recognize its format.
inline constexpr size_t kTellingBytes = 512;

// Returns the format of a file with these first bytes, or null if the format is unknown.
const OtherFormat *other_format(std::string_view first_bytes);

// Raises YOKE_E_CHECKPOINT with EINVAL as native code: the path names no state at all, or several. For a damaged
// state, the native code is 0.
[[noreturn]] void fail_no_state(std::string message);

}  // namespace yoke
