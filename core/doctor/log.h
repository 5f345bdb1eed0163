// log.h: what a kernel's log holds that the doctor may look at, and show to others.
#pragma once

#include <string>

namespace yoke::doctor {

// Of a log's text, the kernel's lines about GPUs, their bus and suspend. What a user's program may have put there, or
// what names one, is left out: lines of daemons, of audits and of the command line; the names of programs in Xids are
// masked.
std::string of_interest(const std::string &log);

// Of a log file, which may reach back for months, the lines since this kernel started; "" where its start is not in it.
std::string since_start(const std::string &log);

// The text of records of /dev/kmsg, "6,1234,5678,-;text" and lines of keys that begin with a blank; "" for a record
// that some program wrote there.
std::string text_of_record(const std::string &record);

}  // namespace yoke::doctor
