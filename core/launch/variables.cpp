#include "core/launch/variables.h"

#include "core/base/config.h"
#include "core/launch/error_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace yoke {

namespace {

constexpr const char *kYokeThreads = "YOKE_NUM_THREADS", *kOtherThreads = "OMP_NUM_THREADS";
using Variables = std::map<std::string, std::string>;

Variables own_variables()
{
    Variables all;
    for (char **entry = environ; *entry; ++entry) {
        const std::string text(*entry);
        const size_t equals = text.find('=');
        if (equals != text.npos) all.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    for (const char *name : {kYokeThreads, kOtherThreads})  // "" counts as not set
        if (const auto found = all.find(name); found != all.end() && found->second.empty())
            all.erase(found);
    return all;
}

// Shares the processors among the ranks, unless the user has set a number. YOKE_NUM_THREADS follows OMP_NUM_THREADS
// by itself.
void share_threads(Variables &all, int32_t ranks)
{
    const std::string share = std::to_string(std::max(usable_processors() / ranks, 1));
    if (!all.emplace(kOtherThreads, share).second) return;
    all.emplace(kYokeThreads, share);
}

}  // namespace

std::vector<std::string> rank_variables(const RunOptions &options, const RunPlace &place,
                                        const RankPlace &rank)
{
    Variables all = own_variables();
    share_threads(all, options.ranks);
    // A torchrun may have started this process; its variables must not reach the new ranks.
    all.erase("TORCHELASTIC_RUN_ID");
    all.erase("TORCHELASTIC_USE_AGENT_STORE");
    const auto set = [&](const char *name, int32_t value) { all[name] = std::to_string(value); };
    set("RANK", options.node * options.ranks + rank.local_rank);
    set("WORLD_SIZE", options.nodes * options.ranks);
    set("LOCAL_RANK", rank.local_rank);
    set("LOCAL_WORLD_SIZE", options.ranks);
    set("GROUP_RANK", options.node);
    set("GROUP_WORLD_SIZE", options.nodes);
    set("TORCHELASTIC_RESTART_COUNT", rank.start);
    set("TORCHELASTIC_MAX_RESTARTS", options.restarts);
    all["MASTER_ADDR"] = place.host;
    all["MASTER_PORT"] = place.port;
    all[kRunVariable] = place.id;
    all[kErrorFileVariable] = rank.error_file;
    std::vector<std::string> texts;
    for (const auto &[name, value] : all) texts.push_back(name + "=" + value);
    return texts;
}

}  // namespace yoke
