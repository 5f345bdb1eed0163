// variables.h: what a rank finds in its environment.
#pragma once

#include "core/launch/run.h"

namespace yoke {

// A name of the job, which `yoke run` gives all its ranks.
inline constexpr const char *kRunVariable = "YOKE_RUN_ID";

// What is alike for the ranks of a run, and for all its starts.
struct RunPlace {
    std::string id;
    std::string host, port;  // of rank 0
};

struct RankPlace {
    int32_t local_rank = 0;
    int32_t start = 0;       // how often all have been started before
    std::string error_file;  // see error_file.h
};

// "NAME=value" of every variable: those of this process, with what tells the rank who it is.
std::vector<std::string> rank_variables(const RunOptions &options, const RunPlace &place,
                                        const RankPlace &rank);

}  // namespace yoke
