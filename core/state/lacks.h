// lacks.h: what a file system lacks of the calls that saving makes, and the one warning about it.
//
// CIFS, FUSE, mounts of buckets and others refuse some calls with an errno that says that there is no such call, not
// that it failed. A state is saved there all the same, and the warning names what then is not promised.
#pragma once

#include "core/state/file_calls.h"

namespace yoke {

enum class Lack { kFolderSync, kFileSync, kLock, kMode, kMove };
inline constexpr size_t kLacks = 5;

// Whether a call that raised the errno is one that the file system lacks. What else fails is an error.
bool is_lacking(Lack lack, int error);

// Notes it for the file system of an open file or folder.
void note_lack(Lack lack, const Descriptor &file, int error) noexcept;

// Warns of what was noted, once for each file system.
void tell_lacks(const char *call) noexcept;
// As if none were known, for tests.
void forget_lacks() noexcept;

}  // namespace yoke
