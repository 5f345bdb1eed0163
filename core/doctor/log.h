// log.h: the part of a kernel's log that the doctor may read and publish.
#pragma once

#include <string>

namespace yoke::doctor {

// Returns the kernel's lines about GPUs, their bus and suspend. Leaves out lines that a user's program may have
// written or that name a program: lines of daemons, of audits and of the command line. Masks the names of programs in
// Xids.
std::string of_interest(const std::string &log);

// Returns a log file's lines since the start of this kernel, because the file may reach back for months; "" if the
// start is not in the file.
std::string since_start(const std::string &log);

// Returns the text of records of /dev/kmsg: "6,1234,5678,-;text" and lines of keys with a blank in front. Returns ""
// for a record written by a program.
std::string text_of_record(const std::string &record);

}  // namespace yoke::doctor
