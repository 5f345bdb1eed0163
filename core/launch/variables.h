// variables.h: environment variables of a rank.
#pragma once

#include "core/launch/run.h"

namespace yoke {

// Variable with a name of the job, which `yoke run` gives to all ranks.
inline constexpr const char *kRunVariable = "YOKE_RUN_ID";

// Values shared by all ranks of a run, in all starts.
struct RunPlace {
    std::string id;
    std::string host, port;  // address of rank 0
};

struct RankPlace {
    int32_t local_rank = 0;
    int32_t start = 0;       // number of earlier starts
    std::string error_file;  // see error_file.h
};

// Returns "NAME=value" of every variable: this process's environment, and the rank's own values.
std::vector<std::string> rank_variables(const RunOptions &options, const RunPlace &place,
                                        const RankPlace &rank);

}  // namespace yoke
