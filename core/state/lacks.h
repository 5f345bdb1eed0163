// lacks.h: calls of a save that a file system does not support, and the single warning about them.
//
// CIFS, FUSE, mounts of buckets and others refuse some calls with an errno for "no such call", not for a failure. A
// state is saved there all the same. The warning names the properties no longer promised.
#pragma once

#include "core/state/file_calls.h"

namespace yoke {

enum class Lack { kFolderSync, kFileSync, kLock, kMode, kMove };
inline constexpr size_t kLacks = 5;

// Returns whether the errno means that the file system does not support the call. Any other errno is an error.
bool is_lacking(Lack lack, int error);

// Notes, for the file system of an open file or folder, that a call is not supported.
void note_lack(Lack lack, const Descriptor &file, int error) noexcept;

// Logs a warning about the calls that were noted, once for each call and file system.
void tell_lacks(const char *call) noexcept;
// Forgets all notes, for tests.
void forget_lacks() noexcept;

}  // namespace yoke
