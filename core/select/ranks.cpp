#include "core/select/ranks.h"

#include "core/base/lent.h"
#include "core/base/log.h"
#include "core/machine/visibility.h"
#include "core/select/told.h"

#include <algorithm>

namespace yoke {

namespace {

// Returns this process's number among the machine's ranks, or nullopt outside of a job. If a variable of the launcher
// is unreadable, warns and returns nullopt: comm.init raises this error, and a process that never calls comm.init has
// no other ranks.
std::optional<int32_t> local_rank_of(const Spec &spec)
try {
    return lent.local_rank();
} catch (const Error &error) {
    if (detail::is_new(error.what()))
        log(LogLevel::kWarn, "device spec '%s': this process does not count as a rank of a job: %s",
            spec.text.c_str(), error.what());
    return std::nullopt;
}

}  // namespace

void detail::look_at_ranks(const Spec &spec, Candidates &all)
{
    if (spec.form != Spec::Form::kAuto || spec.count > 0) return;
    all.situation.local_rank = local_rank_of(spec);
    if (!all.situation.local_rank) return;
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        CardState &state = all.situation.states[i];
        if (state.holder > 0 && lent.is_rank_beside(state.holder)) state.holder = 0;
        for (const yoke_card_process &each : all.machine.cards[i].processes) {
            if (each.visible != 1 || each.compute != 1 || !lent.is_rank_beside(each.pid)) continue;
            ++state.ranks;
            state.ranks_memory += std::max<int64_t>(each.memory_used, 0);
        }
    }
}

void detail::tell_shared(const Spec &spec, const Situation &situation, const Choice &choice)
{
    // The first rank without a device of its own warns, so a job gets a single warning.
    const size_t own = choice.for_ranks;
    if (own == 0 || spec.lease || static_cast<size_t>(*situation.local_rank) != own) return;
    // If each rank sees its own cards, local ranks do not tell which other ranks use these cards.
    if (cuda_variables().visible && lent.is_variable_of_rank("CUDA_VISIBLE_DEVICES")) return;
    const std::string text = format(
        "device spec '%s': this is local rank %d, but only %zu of this machine's devices fit, so some ranks share a device; start one rank for each device",
        spec.text.c_str(), *situation.local_rank, own);
    if (is_new(text)) log(LogLevel::kWarn, "%s", text.c_str());
}

}  // namespace yoke
