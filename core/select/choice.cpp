#include "core/select/choice.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/machine/catalog.h"
#include "core/select/constraints.h"

#include <algorithm>
#include <cmath>

namespace yoke {

namespace {

using detail::Contender;
using detail::Rejections, detail::capability, detail::check_constraints, detail::kUnusable,
    detail::lease_text;

const yoke_card_info &info_of(const Machine &machine, int card)
{
    return machine.card(card).info;
}

// Returns why a card cannot serve here, whatever the spec; an empty rejection if the card can serve.
Rejection unusable(const Card &card, const CardState &state)
{
    const yoke_card_info &info = card.info;
    // Devices held by other ranks of the job still count, because all ranks must count alike.
    const bool is_of_ranks = card.rejected == Reason::kHeldAlone && state.ranks > 0;
    if (card.rejected != Reason::kNone && !is_of_ranks) return {card.rejected, info.reason};
    if (info.present == 0) return {Reason::kGone, "the card no longer answers; run `yoke doctor`"};
    if (kind_of(card, state).empty())
        return {Reason::kNoBackend,
                "Yoke has no backend for devices of " +
                    (*info.vendor ? std::string(info.vendor) : std::string("an unknown vendor"))};
    if (info.kind != YOKE_CARD_MIG && info.mig == 1 && state.device.empty())
        return {Reason::kPartitioned,
                "the card is partitioned: only its MIG instances are devices"};
    if (state.rejection) return state.rejection;
    if (!state.device.empty()) return {};
    return {Reason::kNoNumber, "the card has no number among CUDA's devices"};
}

// Adds a rejection if the spec means another card: by number, UUID or address, by kind, or by a part of the name.
void check_identity(const Card &card, const CardState &state, const Spec &spec,
                    Rejections &rejections)
{
    if (!detail::is_named(card, state, spec))
        rejections.add("the spec names another device", kUnusable / 2);
    if (!spec.kind.empty() && kind_of(card, state) != spec.kind)
        rejections.add(
            "the kind is " + kind_of(card, state) + ", but the spec requires " + spec.kind,
            kUnusable / 2);
    if (!spec.name_holds.empty() &&
        detail::lower_case(card.info.name).find(detail::lower_case(spec.name_holds)) ==
            std::string::npos)
        rejections.add("the name does not contain '" + spec.name_holds + "'");
}

Rejections judge_card(const Machine &machine, int index, const Situation &situation,
                      const Spec &spec)
{
    const Card &card = machine.card(index);
    const CardState &state = situation.states[static_cast<size_t>(index)];
    Rejections lacking;
    check_identity(card, state, spec, lacking);
    check_constraints(card, state, spec, lacking);
    const Rejection why = unusable(card, state);
    if (!why) return lacking;
    Rejections rejections;
    // The exclusive user may end. Waiting helps only if the card would fit then.
    const bool is_taken = why.reason == Reason::kHeldAlone && !state.device.empty();
    rejections.add(why.text, kUnusable, is_taken && lacking.passing == lacking.count);
    return rejections;
}

// Returns the merits of an accepted card.
std::string merits(const Card &card, const CardState &state)
{
    const yoke_card_info &info = card.info;
    std::string text = *info.name ? info.name : "a device";
    if (info.cc_major >= 0) text += ", compute capability " + capability(info);
    if (info.memory_free >= 0 && info.memory_total >= 0)
        text += ", " + bytes_text(info.memory_free, BytesStyle::kShort) + " of " +
                bytes_text(info.memory_total, BytesStyle::kShort) + " free";
    if (!std::isnan(info.utilization)) text += format(", %.0f %% busy", 100 * info.utilization);
    if (info.nvlinks_active > 0) text += format(", %d NVLinks", info.nvlinks_active);
    if (info.is_egpu == 1) text += ", external";
    if (info.asleep == 1) text += ", asleep";
    if (state.holder) text += ", " + lease_text(state.holder);
    if (!state.note.empty()) text += "; " + state.note;
    return text;
}

Contender contender(const Machine &machine, const Situation &situation, int card)
{
    constexpr int64_t kStep = int64_t{256} << 20;
    const yoke_card_info &info = info_of(machine, card);
    Contender made;
    made.card = card;
    made.leased = situation.states[static_cast<size_t>(card)].holder != 0;
    made.link = detail::link_rate(info);
    // If the free memory is unknown, all memory counts as free, so the larger card is chosen.
    const int64_t free = info.memory_free < 0 ? known_memory(info) : info.memory_free;
    made.free_memory = free < 0 ? -1 : free / kStep;
    made.memory = std::max<int64_t>(known_memory(info), 0) / kStep;
    made.number = detail::number_of_device(situation.states[static_cast<size_t>(card)].device);
    made.load = std::isnan(info.utilization) ? 0 : static_cast<int>(100 * info.utilization + 0.5);
    return made;
}

Verdict verdict_on(const Machine &machine, int card, const Situation &situation, const Spec &spec)
{
    const CardState &state = situation.states[static_cast<size_t>(card)];
    const Rejections rejections = judge_card(machine, card, situation, spec);
    Verdict verdict;
    verdict.card = card;
    verdict.accepted = rejections.count == 0;
    verdict.broken = rejections.count;
    verdict.may_pass = rejections.may_pass();
    verdict.device = state.device;
    verdict.reason = verdict.accepted ? merits(machine.card(card), state) : rejections.text;
    return verdict;
}

void judge_cards(const Machine &machine, const Situation &situation, const Spec &spec,
                 bool for_ranks, Choice &choice, std::vector<Contender> &fitting)
{
    for (int i = 0; i < static_cast<int>(machine.cards.size()); ++i) {
        choice.verdicts.push_back(verdict_on(machine, i, situation, spec));
        if (choice.verdicts.back().accepted) fitting.push_back(contender(machine, situation, i));
    }
    std::sort(fitting.begin(), fitting.end(),
              for_ranks ? detail::is_before_for_ranks : detail::is_before);
}

// Returns whether the CPU is the first choice, and no fallback: the user's order of kinds begins with the CPU, and
// the spec allows all kinds.
bool takes_cpu_first(const Situation &situation, const Spec &spec)
{
    return situation.cpu_first && spec.form == Spec::Form::kAuto && spec.kind.empty() &&
           spec.needs_gpu_for().empty();
}

// Chooses this rank's device. Each rank of the machine gets a device of its own, in turn if there are fewer devices.
void take_own(int32_t local_rank, const std::vector<Contender> &fitting, Choice &choice)
{
    choice.for_ranks = fitting.size();
    const Contender &own = fitting[static_cast<size_t>(local_rank) % fitting.size()];
    choice.chosen.push_back(own.card);
    for (Verdict &verdict : choice.verdicts)
        if (verdict.card == own.card) verdict.reason += format("; for local rank %d", local_rank);
}

// Chooses from the fitting devices. Takes the CPU if the CPU is the first choice, and for a rank, the rank's own
// device. If the spec is only a kind's name, takes the kind's first device, as open_device does. Else takes the best
// set.
void take_best(const Machine &machine, const Situation &situation, const Spec &spec, int count,
               bool for_ranks, const std::vector<Contender> &fitting, const Verdict &cpu,
               Choice &choice)
{
    if (count == 1 && cpu.accepted && takes_cpu_first(situation, spec)) {
        choice.chosen.push_back(kCpuCandidate);
        return;
    }
    if (for_ranks && !fitting.empty()) return take_own(*situation.local_rank, fitting, choice);
    if (count == 1 && spec.form == Spec::Form::kKind)
        for (const Contender &each : fitting)
            if (situation.states[static_cast<size_t>(each.card)].device == spec.kind + ":0") {
                choice.chosen.push_back(each.card);
                return;
            }
    for (const Contender &each :
         detail::best_set(machine, spec, fitting, static_cast<size_t>(count)))
        choice.chosen.push_back(each.card);
}

// Returns whether the CPU may be taken, with the reason.
Verdict judge_cpu(const Situation &situation, const Spec &spec)
{
    Verdict verdict;
    verdict.device = kHostKind;
    Rejections rejections;
    const int64_t has[] = {situation.cpu_free, situation.cpu_total};
    const int64_t wanted[] = {spec.min_free, spec.min_memory};
    if (situation.cpu_problem) rejections.add(*situation.cpu_problem, kUnusable);
    if (!spec.needs_gpu_for().empty())
        rejections.add("no CPU can meet " + spec.needs_gpu_for());
    else if (!spec.kind.empty() && spec.kind != kHostKind)
        rejections.add("the spec requires kind " + spec.kind, kUnusable / 2);
    else if (!spec.allows_cpu() && !takes_cpu_first(situation, spec))
        rejections.add("fallback=error");
    for (int i = 0; i < 2; ++i)
        if (wanted[i] >= 0 && has[i] >= 0 && has[i] < wanted[i])
            rejections.add(bytes_text(has[i], BytesStyle::kShort) +
                               (i ? " of memory, " : " of free memory, ") +
                               bytes_text(wanted[i], BytesStyle::kShort) + " was requested",
                           1, i == 0 && wanted[i] <= situation.cpu_total);
    verdict.accepted = rejections.count == 0;
    verdict.may_pass = rejections.may_pass();
    verdict.broken = rejections.count;
    verdict.reason = !verdict.accepted        ? rejections.text
                     : spec.kind == kHostKind ? "the host's processor"
                     : takes_cpu_first(situation, spec)
                         ? "the host's processor, which YOKE_PLATFORMS names first"
                         : "the host's processor, because no GPU fits";
    return verdict;
}

// Returns whether waiting may help: some obstacles may pass, and enough devices would fit then.
bool may_change(const Choice &choice, const Verdict &cpu, size_t count)
{
    size_t fitting = 0, passing = 0;
    for (const Verdict &verdict : choice.verdicts) {
        if (verdict.card == kCpuCandidate) continue;
        fitting += verdict.accepted;
        passing += verdict.may_pass;
    }
    return (passing > 0 && fitting + passing >= count) || (cpu.may_pass && count == 1);
}

void put_in_order(const Machine &machine, const Situation &situation, Choice &choice,
                  const std::vector<Contender> &fitting)
{
    for (size_t i = 0; i < choice.chosen.size(); ++i)
        for (Verdict &verdict : choice.verdicts)
            if (verdict.card == choice.chosen[i]) verdict.place = static_cast<int>(i);
    // A process started with the chosen cards in the variable numbers the cards anew.
    for (Verdict &verdict : choice.verdicts)
        if (verdict.place >= 0 && verdict.card != kCpuCandidate &&
            !situation.states[static_cast<size_t>(verdict.card)].note.empty())
            verdict.device = kind_of(machine.card(verdict.card),
                                     situation.states[static_cast<size_t>(verdict.card)]) +
                             ":" + std::to_string(verdict.place);
    const auto rank = [&](const Verdict &v) {
        size_t place = 0;
        while (place < fitting.size() && fitting[place].card != v.card) ++place;
        return place;  // the CPU and unfit devices come after fitting devices
    };
    std::stable_sort(choice.verdicts.begin(), choice.verdicts.end(),
                     [&](const Verdict &a, const Verdict &b) {
                         if ((a.place < 0) != (b.place < 0)) return b.place < 0;
                         if (a.place != b.place) return a.place < b.place;
                         if (a.accepted && b.accepted) return rank(a) < rank(b);
                         return a.broken < b.broken;
                     });
}

}  // namespace

std::string kind_of(const Card &card, const CardState &state)
{
    if (!state.device.empty()) return state.device.substr(0, state.device.find(':'));
    return kind_serving(card.info.vendor);
}

Choice choose(const Machine &machine, const Situation &situation, const Spec &spec, int asked)
{
    const int count = std::max(asked, 1);
    const bool for_ranks = asked == 0 && situation.local_rank && spec.form == Spec::Form::kAuto;
    detail::check_one(machine, situation, spec, count);
    Choice choice;
    std::vector<Contender> fitting;
    judge_cards(machine, situation, spec, for_ranks, choice, fitting);
    const Verdict cpu = judge_cpu(situation, spec);
    choice.verdicts.push_back(cpu);
    take_best(machine, situation, spec, count, for_ranks, fitting, cpu, choice);
    if (choice.chosen.empty()) {
        const bool lacks_set = fitting.size() >= static_cast<size_t>(count);
        const std::string why = lacks_set ? detail::no_set(machine, situation, spec, fitting, count)
                                          : detail::too_few(machine, situation, spec,
                                                            choice.verdicts, fitting.size(), count);
        if (cpu.accepted && count == 1) {
            choice.chosen.push_back(kCpuCandidate);
            choice.is_fallback = spec.kind != kHostKind;
            choice.passed_over = choice.is_fallback ? why : "";
        } else {
            choice.problem = why;
        }
    }
    choice.may_change = may_change(choice, cpu, static_cast<size_t>(count));
    put_in_order(machine, situation, choice, fitting);
    return choice;
}

}  // namespace yoke
