#include "core/select/constraints.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

namespace yoke {

using detail::Rejections;

std::string detail::lease_text(int32_t holder)
{
    return holder > 0 ? format("process %d holds its lease", holder)
                      : std::string("another process holds its lease");
}

std::string detail::capability(const yoke_card_info &info)
{
    return format("%d.%d", info.cc_major, info.cc_minor);
}

namespace {

using detail::capability, detail::lease_text;

void check_memory(const yoke_card_info &info, const char *what, int64_t has, int64_t wanted,
                  bool passes, Rejections &rejections)
{
    if (wanted < 0 || has >= wanted) return;
    const std::string asked = ", " + bytes_text(wanted, BytesStyle::kShort) + " was requested";
    const std::string reason =
        has < 0 ? std::string("the ") + what + " memory is not known" +
                      (info.asleep == 1 ? " while it is asleep" : "") + asked
                : bytes_text(has, BytesStyle::kShort) + " of " + what + " memory" + asked;
    rejections.add(reason, 1, passes);
}

void check_capability(const yoke_card_info &info, const Spec &spec, Rejections &rejections)
{
    if (spec.min_cc < 0 || 10 * info.cc_major + info.cc_minor >= spec.min_cc) return;
    const std::string wanted = format("%d.%d", spec.min_cc / 10, spec.min_cc % 10);
    if (info.cc_major < 0)
        rejections.add("the compute capability is not known, at least " + wanted +
                       " was requested");
    else
        rejections.add("compute capability " + capability(info) + ", at least " + wanted +
                       " was requested");
}

void check_load(const yoke_card_info &info, const Spec &spec, Rejections &rejections)
{
    if (spec.max_util < 0 || info.utilization <= spec.max_util) return;
    const std::string wanted = format("at most %g %% was requested", 100 * spec.max_util);
    if (std::isnan(info.utilization)) {
        // A sleeping card has no work.
        if (info.asleep != 1) rejections.add("the utilization is not known, " + wanted);
    } else {
        rejections.add_passing(format("%.0f %% busy, ", 100 * info.utilization) + wanted);
    }
}

int computing_processes(const Card &card, const CardState &state)
{
    int count = 0;
    for (const yoke_card_process &process : card.processes) count += process.compute == 1;
    return std::max(count - state.ranks, std::max(0, card.info.hidden_processes));
}

void check_excluded(const Card &card, const CardState &state, const Spec &spec,
                    Rejections &rejections)
{
    const yoke_card_info &info = card.info;
    const auto excluded = [&](Spec::Exclude what) { return (spec.exclude & what) != 0; };
    if (excluded(Spec::kEgpu) && info.is_egpu == 1)
        rejections.add("the GPU is external, but the spec has exclude=egpu");
    if (excluded(Spec::kDisplay) && info.display == 1)
        rejections.add("a display is attached to the GPU, but the spec has exclude=display");
    if (excluded(Spec::kMig) && info.kind == YOKE_CARD_MIG)
        rejections.add("the device is a MIG instance, but the spec has exclude=mig");
    if (excluded(Spec::kIntegrated) && info.kind == YOKE_CARD_INTEGRATED)
        rejections.add(
            "the GPU is part of the processor's chip, but the spec has exclude=integrated");
    const int busy = computing_processes(card, state);
    if (excluded(Spec::kBusy) && busy > 0)
        rejections.add_passing(
            format("%d processes compute on the GPU, but the spec has exclude=busy", busy));
    if ((excluded(Spec::kLeased) || spec.lease) && state.holder)
        rejections.add_passing(
            lease_text(state.holder) +
            (spec.lease ? ", but the spec has lease" : ", but the spec has exclude=leased"));
}

}  // namespace

void detail::check_constraints(const Card &card, const CardState &state, const Spec &spec,
                               Rejections &rejections)
{
    const yoke_card_info &info = card.info;
    // Others may free some, and a card may wake up; more than there is in all will never be free.
    const bool could_have = info.memory_total < 0 || spec.min_free <= info.memory_total;
    const bool passes = info.memory_free < 0 ? info.asleep == 1 : could_have;
    // Memory used by ranks of this job counts as free, because every rank must get the same answer, whichever looks
    // first.
    const int64_t room = info.memory_free < 0 ? -1 : info.memory_free + state.ranks_memory;
    check_memory(info, "free", room, spec.min_free, passes, rejections);
    check_memory(info, "total", info.memory_total, spec.min_memory, false, rejections);
    check_capability(card.info, spec, rejections);
    if (state.ranks == 0) check_load(card.info, spec, rejections);
    check_excluded(card, state, spec, rejections);
}

}  // namespace yoke
