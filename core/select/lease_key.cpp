// Finds the card for a user's name, for leases: they belong to cards, not to devices.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/select/candidates.h"

namespace yoke {

namespace {

// Returns the name as a spec. Users may omit "uuid:" or "pci:" before a UUID, its beginning or an address.
std::string spec_text(std::string_view name)
{
    const std::string low = detail::lower_case(name);
    const auto is_of = [&](const char *characters) {
        return low.find_first_not_of(characters) == low.npos;
    };
    const bool has_prefix = low.rfind("gpu-", 0) == 0 || low.rfind("mig-", 0) == 0;
    constexpr size_t kFirstGroup = 8;  // first group of a UUID; a shorter text may be a word
    if (has_prefix || (low.size() >= kFirstGroup && is_of("0123456789abcdef-")))
        return "uuid:" + std::string(name);
    const bool has_bus = low.find(':') != low.npos;
    return (has_bus && is_of("0123456789abcdef:.") ? "pci:" : "") + std::string(name);
}

bool names_one(const Spec &spec)
{
    return spec.form == Spec::Form::kIndex || spec.form == Spec::Form::kUuid ||
           spec.form == Spec::Form::kPci;
}

}  // namespace

std::string lease_key_of(std::string_view name)
{
    const std::string text(name);
    const Spec spec = parse_spec(spec_text(name));
    if (!names_one(spec) || spec.kind == kHostKind)
        fail(
            YOKE_E_VALUE,
            "'%s' names no card; give a UUID or its beginning, a PCI address, or a device such as cuda:0",
            text.c_str());
    const Candidates all = find_candidates(spec, false);
    detail::check_one(all.machine, all.situation, spec, 1);
    std::vector<std::string> cards;
    for (size_t i = 0; i < all.machine.cards.size(); ++i) {
        const Card &card = all.machine.cards[i];
        const std::string key = lease_key(card.info);
        // A partitioned card has its instances' address and is never leased.
        const bool is_whole = card.info.kind != YOKE_CARD_MIG && card.info.mig == 1;
        const bool by_address = spec.form == Spec::Form::kPci;
        if (!(is_whole && by_address) && detail::is_named(card, all.situation.states[i], spec))
            return !key.empty() || !all.devices[i] ? key : lease_key(*all.devices[i]);
        cards.push_back(key);
    }
    fail(YOKE_E_VALUE, "'%s' names no card of this machine%s%s", text.c_str(),
         cards.empty() ? ", which shows no card" : "; the cards are ", join(cards).c_str());
}

}  // namespace yoke
