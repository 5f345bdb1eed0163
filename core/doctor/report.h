// report.h: the result of all checks over the facts, in order.
#pragma once

#include "core/base/refcount.h"
#include "core/doctor/checks.h"
#include "core/doctor/redact.h"

#include <string>
#include <vector>

namespace yoke::doctor {

struct Options {
    bool probe = false;    // also run work on a device
    bool redact = false;   // no names of hosts, users and processes, no UUIDs
    double deadline = 10;  // seconds for one probe
};

struct Check {
    int number;
    const char *id, *title, *url;
    Finding finding;
};

struct Report {
    std::vector<Check> checks;
    int exit_code = 0;  // 0: all well, 1: a check failed, 2: a check could not be run
};

// Reads the facts of this machine, or of the root in YOKE_SYSROOT, with probes if asked for.
Facts gather(RecordedRoot &root, const Options &options);

// Runs all checks. A check that raises is a bug: its finding says so, and the exit code is 2.
Report examine(const Facts &facts);

void redact(Report &report, Redactor &redactor);

// Returns "ok", "warn", "fail" or "skip".
const char *status_word(int status);

// Writes scenario.json, root/, environment and report.json into `folder`, which is new or empty. Raises YOKE_E_IO,
// naming the path; YOKE_E_UNSUPPORTED in a build without nlohmann-json.
void record(const std::string &folder, const Options &options);

}  // namespace yoke::doctor

// Report with a handle.
struct yoke_report final : yoke::RefCounted {
    yoke::doctor::Report report;

protected:
    void destroy() noexcept override { delete this; }
};
