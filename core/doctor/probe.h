// probe.h: what must be tried to be known, copies and kernels, each in a process of its own that is ended at a
// deadline.
//
// The process is `yoke-probe`, installed beside the command `yoke`: a host program could not be run again as a probe.
// It is looked for in YOKE_BIN, then beside this library. A probe that hangs or crashes takes nothing with it.
#pragma once

#include "core/doctor/facts.h"

#include <string>
#include <vector>

namespace yoke::doctor {

struct Outcome {
    std::string output;  // of both streams, at most 64 KiB
    bool late = false;   // ended by us
    int status =
        -1;  // as waitpid gives it; -1: not known, because the host takes no notice of its children
    std::string problem;  // it could not be started
};

// Runs a program with all its children as one group, which ends with it or at the deadline.
Outcome run_bounded(const std::vector<std::string> &command, double seconds);

// The program's path, "" if there is none.
std::string probe_program(const Facts &facts);

// Measures every card that CUDA shows; what it finds goes to facts.probes. After a minute no further probe begins.
void run_probes(RecordedRoot &root, Facts &facts, double deadline);

// Of another root: the figures stand in its file yoke/probes, lines "0.h2d 2.3e10", by the inventory's numbers.
void read_probes(RecordedRoot &root, Facts &facts);

// One line of figures, "h2d 2.3e10" or "peer.1 2e10", taken over. False for any other line.
bool take_line(const std::string &line, const std::vector<int> &cards, ProbeResult &result);

}  // namespace yoke::doctor
