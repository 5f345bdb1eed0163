// other_formats.h: what else a file may be that somebody loads, by its first bytes, and what makes a state of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace yoke {

struct OtherFormat {
    const char *name;    // "a checkpoint of PyTorch (torch.save)"
    const char *advice;  // what to write; FILE is the one that was named, NEW one to be made
};

// So many of a file's first bytes tell it.
inline constexpr size_t kTellingBytes = 512;

// Null where it is none that is known.
const OtherFormat *other_format(std::string_view first_bytes);

// Raises YOKE_E_CHECKPOINT with EINVAL as native code: what was named is no state at all, or no single one. Of a state
// that is damaged it is 0.
[[noreturn]] void fail_no_state(std::string message);

}  // namespace yoke
