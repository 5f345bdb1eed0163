// probe.h: facts that need a trial, copies and kernels. Each trial runs in a process of its own, ended at a deadline.
//
// The process is `yoke-probe`, installed beside the command `yoke`, because a host program could not be run again as
// a probe. Yoke looks for yoke-probe in YOKE_BIN, then beside this library. A probe that hangs or crashes does not
// affect the caller.
#pragma once

#include "core/doctor/facts.h"

#include <string>
#include <vector>

namespace yoke::doctor {

struct Outcome {
    std::string output;  // output of both streams, at most 64 KiB
    bool late = false;   // ended at the deadline
    int status =
        -1;  // status of waitpid; -1: unknown, because the host program ignores the end of its children
    std::string problem;  // why the start failed
};

// Runs a program with all its children in one process group. The group ends with the program, or at the deadline.
Outcome run_bounded(const std::vector<std::string> &command, double seconds);

// Returns the path of yoke-probe, in YOKE_BIN or beside this library; "" if missing.
std::string probe_program(const Facts &facts);

// Measures every card visible to CUDA, and writes to facts.probes. After a minute, no further probe begins.
void run_probes(RecordedRoot &root, Facts &facts, double deadline);

// Reads the figures of another root from its file yoke/probes: lines "0.h2d 2.3e10", by the inventory's numbers.
void read_probes(RecordedRoot &root, Facts &facts);

// Takes over a line of figures, "h2d 2.3e10" or "peer.1 2e10". Returns false for any other line.
bool take_line(const std::string &line, const std::vector<int> &cards, ProbeResult &result);

}  // namespace yoke::doctor
