// error_file.h: how a rank tells whoever started it why it failed: in the file that TORCHELASTIC_ERROR_FILE names, as
// torchrun and `yoke run` read it.
#pragma once

#include <string>

namespace yoke {

// Behind the file's name stands that of a longer text, such as a traceback, which `yoke run` alone reads.
inline constexpr const char *kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";
inline constexpr const char *kTraceSuffix = ".trace";
// Behind the file's name: an empty file, which a rank touches when the dumps of its groups are written.
inline constexpr const char *kDumpedSuffix = ".dumped";

// Nothing where the variable is not set, or the file is there already: what was told first stands. Nor in a forked
// child, which is no rank, unless whoever forked it has set the variable anew. A process that ends with the exit code 0
// takes it back.
void tell_launcher(const std::string &cause) noexcept;
// What ends the process. It takes the place of what this process has told, unless it is that: the script went on.
void tell_launcher_of_end(const std::string &cause) noexcept;
// The script goes on: what this process has told is no cause of a later end.
void take_back_told() noexcept;

// Touches the file of kDumpedSuffix.
void tell_launcher_of_dumps() noexcept;

struct ToldCause {
    std::string text;   // "" where the rank told none
    double told_s = 0;  // since the epoch; 0: it did not say
};
ToldCause read_error_file(const std::string &path);

}  // namespace yoke
