// error_file.h: a rank's report of its failure to the launcher.
//
// The report is in the file named by TORCHELASTIC_ERROR_FILE, in the format of torchrun and `yoke run`.
#pragma once

#include <string>

namespace yoke {

// Suffix of the file with a longer text, such as a traceback. Only `yoke run` reads this file.
inline constexpr const char *kErrorFileVariable = "TORCHELASTIC_ERROR_FILE";
inline constexpr const char *kTraceSuffix = ".trace";
// Suffix of an empty file, which a rank touches after the dumps of its groups are written.
inline constexpr const char *kDumpedSuffix = ".dumped";

// Writes the cause to the error file. If the variable is not set, or the file exists already, nothing is written: the
// first cause stays. A forked child is no rank and writes no cause, unless the variable was set anew after the fork.
// If the process ends with exit code 0, the file is removed.
void tell_launcher(const std::string &cause) noexcept;
// Writes the cause of the process's end. If this process has published another cause, the script survived the
// failure, so the new cause replaces the old.
void tell_launcher_of_end(const std::string &cause) noexcept;
// Removes the cause published by this process: the script goes on, so a later end has another cause.
void take_back_told() noexcept;

// Touches this rank's file of kDumpedSuffix, so the launcher learns that the dumps are written. Does nothing without
// an error file.
void tell_launcher_of_dumps() noexcept;

struct ToldCause {
    std::string text;   // "" if the rank published no cause
    double told_s = 0;  // since the epoch; 0: unknown
};
// Returns the cause in a rank's error file. If the file has another format, the whole text is the cause.
ToldCause read_error_file(const std::string &path);

}  // namespace yoke
