// run.h: ranks of a node, started as processes, watched and ended together.
//
// Each rank leads its own process group. The rank dies with the thread that started it. Other processes of the group
// die with the launcher: see guard.h. Signals that end, stop or ask a program go on to the running ranks: see
// taken_signals.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

struct RunOptions {
    std::vector<std::string> command;
    int32_t ranks = 1;            // on this node, at most YOKE_MAX_RANKS
    int32_t nodes = 1, node = 0;  // as many ranks on each
    std::string master;           // "HOST:PORT"; "": a free port of this node
    int32_t restarts = 0;         // number of restarts of all ranks after a failure
    double grace_s = 10;          // from TERM to KILL
    bool has_stdin = true;        // rank 0 reads this process's stdin, if `input` is empty
    std::optional<std::string_view> input;  // standard input of each rank
};

struct RunResult {
    int32_t exit_code = 0;  // first failed rank's exit code; 128 + N if signal N ended the rank
    int32_t rank = -1;  // first failed rank; -1: no rank failed, but a start or an output may have
    int32_t signal = 0;
    int64_t process = 0;
    std::string text;   // the failure in a line for people
    std::string trace;  // longer text, left by the rank beside its error file
};

// Starts the ranks, waits until all have ended, and returns the failure of the first failed rank, if any. After a
// failure, starts all ranks again, up to `restarts` times. Raises YOKE_E_VALUE for invalid options, YOKE_E_IO if the
// system refuses pipes or processes, and YOKE_E_STATE if this process would not learn how a rank ended.
RunResult run_ranks(const RunOptions &options);

}  // namespace yoke
