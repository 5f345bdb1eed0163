// run.h: ranks of one node, started as processes, watched and ended together.
//
// Each rank leads a process group of its own. It dies with the thread that started it, and what it has started in its
// group dies with the process: see guard.h. The signals that a program is ended, stopped or asked by go on to the ranks
// while they run: see taken_signals.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

struct RunOptions {
    std::vector<std::string> command;
    int32_t ranks = 1;                      // of this node, at most YOKE_MAX_RANKS
    int32_t nodes = 1, node = 0;            // as many ranks on each
    std::string master;                     // "HOST:PORT"; "": a free port of this node
    int32_t restarts = 0;                   // how often all are started again when one has failed
    double grace_s = 10;                    // from TERM to KILL
    bool has_stdin = true;                  // rank 0 reads this process's, where `input` is none
    std::optional<std::string_view> input;  // what each rank reads as its standard input
};

struct RunResult {
    int32_t exit_code = 0;  // of the first rank that failed; 128 + N of one that signal N has ended
    int32_t rank =
        -1;  // that one; -1: none failed, but the command could not be started or its output written
    int32_t signal = 0;
    int64_t process = 0;
    std::string text;   // of what failed, in a line for people
    std::string trace;  // a longer text that it has left beside its error file
};

// Returns when all have ended. Raises YOKE_E_VALUE for options that cannot be, YOKE_E_IO where the system refuses pipes
// or processes, YOKE_E_STATE where it would not be told how a process ended.
RunResult run_ranks(const RunOptions &options);

}  // namespace yoke
