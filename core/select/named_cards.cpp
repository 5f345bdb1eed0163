// Finds the card named by a spec, by number, UUID or address, and names cards in messages.
#include "core/backend/registry.h"
#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/select/choice.h"

#include <algorithm>

namespace yoke::detail {

namespace {

using Form = Spec::Form;

bool starts_with(std::string_view text, std::string_view prefix)
{
    return text.substr(0, prefix.size()) == prefix;
}

// Returns the card's UUID or address, according to the spec's form.
std::string mark_of(const Card &card, const Spec &spec)
{
    return spec.form == Form::kUuid ? lower_case(card.info.uuid) : normal_pci(card.info.pci);
}

// Returns whether the card is partitioned. A partitioned card has the address of its instances, and no program can
// use the whole card.
bool is_partitioned(const Card &card)
{
    return card.info.kind != YOKE_CARD_MIG && card.info.mig == 1;
}

[[noreturn]] __attribute__((cold)) void fail_many(const Spec &spec,
                                                  const std::vector<const Card *> &meant)
{
    std::vector<std::string> names;
    bool all_instances = spec.form == Form::kPci;
    for (const Card *card : meant) {
        names.push_back(std::string(card->info.uuid) + " at " + card->info.pci);
        all_instances &= card->info.kind == YOKE_CARD_MIG &&
                         std::string_view(card->info.pci) == meant.front()->info.pci;
    }
    if (all_instances)
        fail(
            YOKE_E_VALUE,
            "device spec '%s' names a card that is partitioned into %zu MIG instances: %s; name an instance, such as uuid:%s",
            spec.text.c_str(), meant.size(), join(names).c_str(), meant.front()->info.uuid);
    fail(YOKE_E_VALUE,
         "device spec '%s' is the beginning of %zu cards: %s; write a longer beginning",
         spec.text.c_str(), meant.size(), join(names).c_str());
}

}  // namespace

std::string lower_case(std::string_view text)
{
    std::string low(text);
    std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return tolower(c); });
    return low;
}

bool is_named(const Card &card, const CardState &state, const Spec &spec)
{
    if (spec.form == Form::kIndex)
        return state.device == spec.kind + ":" + std::to_string(spec.index);
    if (spec.form != Form::kUuid && spec.form != Form::kPci) return true;
    const std::string mark = mark_of(card, spec);
    if (starts_with(mark, spec.prefix)) return true;
    return spec.form == Form::kUuid && starts_with(bare_uuid(mark), spec.prefix);
}

std::string name_of(const Machine &machine, const Situation &situation, const Spec &spec, int card)
{
    if (card == kCpuCandidate) return "cpu";
    const yoke_card_info &info = machine.card(card).info;
    const std::string &device = situation.states[static_cast<size_t>(card)].device;
    std::string mark = !device.empty() ? device : *info.uuid ? info.uuid : info.pci;
    if (spec.form == Form::kUuid && *info.uuid) mark = info.uuid;
    if (spec.form == Form::kPci && *info.pci) mark = info.pci;
    const std::string name = *info.name ? info.name : "a card";
    return mark.empty() ? name : name + " (" + mark + ")";
}

std::string nearest_card(const Machine &machine, const Situation &situation, const Spec &spec)
{
    if (spec.form != Form::kUuid && spec.form != Form::kPci) return "";
    std::vector<std::string> marks;
    std::vector<int> cards;
    for (size_t i = 0; i < machine.cards.size(); ++i) {
        const Card &card = machine.cards[i];
        if (is_named(card, situation.states[i], spec)) return "";
        std::string mark = mark_of(card, spec);
        if (spec.form == Form::kUuid && bare_uuid(spec.prefix) == spec.prefix)
            mark = bare_uuid(mark);
        if (mark.empty() || is_partitioned(card)) continue;
        marks.push_back(mark.substr(0, spec.prefix.size()));
        cards.push_back(static_cast<int>(i));
    }
    const std::vector<const char *> words = c_strings(marks);
    const char *meant = nearest_word(spec.prefix, words);
    for (size_t i = 0; meant && i < words.size(); ++i) {
        if (words[i] != meant) continue;
        const yoke_card_info &info = machine.card(cards[i]).info;
        const bool by_uuid = spec.form == Form::kUuid;
        return format("; did you mean '%s:%s'?", by_uuid ? "uuid" : "pci",
                      by_uuid ? info.uuid : info.pci);
    }
    return "";
}

void check_one(const Machine &machine, const Situation &situation, const Spec &spec, int count)
{
    const bool names_one =
        spec.form == Form::kIndex || spec.form == Form::kUuid || spec.form == Form::kPci;
    if (!names_one) return;
    if (count > 1)
        fail(YOKE_E_VALUE,
             "device spec '%s' names one device, but %d were requested; use auto:n=%d",
             spec.text.c_str(), count, count);
    std::vector<const Card *> meant;
    for (size_t i = 0; i < machine.cards.size(); ++i) {
        const Card &card = machine.cards[i];
        if (spec.form == Form::kPci && is_partitioned(card)) continue;
        if (is_named(card, situation.states[i], spec)) meant.push_back(&card);
    }
    if (meant.size() > 1) fail_many(spec, meant);
}

}  // namespace yoke::detail
