// The machine's cards known to NVML, by PCI address, and cards known only to NVML.
#include "core/machine/nvml_session.h"

#include "core/base/error.h"
#include "core/machine/nvidia_card.h"
#include "core/machine/sysfs.h"

#include <algorithm>
#include <cstring>

namespace yoke::nvml {

namespace {

bool is_candidate(const Card &card)
{
    // To take the handle of a sleeping card would wake the card.
    return card.info.pci[0] && is_nvidia(card.info) && card.info.present == 1 &&
           card.info.asleep != 1 && may_be_held_by_nvidia(card.info);
}

// Notes on the card why NVML refused its handle: the card is lost, or cannot be used for a reason.
void note_refusal(Card &card, int code)
{
    yoke_card_info &info = card.info;
    if (code == kLost || code == kGpuNotFound)
        info.present = 0;
    else if (code == kNoPermission)
        reject(
            card,
            {Reason::kClosedFile,
             "this user may not open the card's files /dev/nvidia*: use chmod or a udev rule, or add the user to the group that owns the files"});
    else if (code == kNotFound)
        reject(
            card,
            {Reason::kNotShown,
             "the driver does not show this card to this process; in a container, start it with --gpus all or NVIDIA_VISIBLE_DEVICES=all"});
    else if (code != kNoFunction)
        reject(card, {Reason::kCannotOpen,
                      format("the driver cannot open the card: %s; see dmesg | grep -i nvrm",
                             describe(code).c_str())});
}

// Gets handles for the cards on the bus by PCI address, except sleeping cards. Returns how many of the library's
// cards are accounted for; -1 if the library does not support addresses.
int find_by_address(Session &session)
{
    int found = 0;
    for (size_t i = 0; i < session.machine.cards.size(); ++i) {
        Card &card = session.machine.cards[i];
        if (!is_candidate(card)) {
            found += card.info.asleep == 1 || card.info.present == 0;
            continue;
        }
        const std::string address = card.info.pci;
        session.call_card = address;
        const int code =
            session.call(session.api.by_address, address.c_str(), &session.known[i].handle);
        if (code == kNoFunction) return -1;
        if (code != kSuccess) session.known[i].handle = nullptr;
        // A card without a driver is refused for this reason, reported elsewhere. NVML may not know nvgpu's cards.
        if (code != kSuccess && is_held_by_nvidia(card.info)) note_refusal(card, code);
        found += code != kNotFound;
    }
    session.call_card.clear();
    return found;
}

std::string address_by_handle(Session &session, Handle handle)
{
    PciInfo info{};
    if (session.call(session.api.pci_info, handle, &info) == kSuccess ||
        session.call(session.api.pci_info_old, handle, &info) == kSuccess)
        return address_of(info);
    return "";
}

// Returns a place for a card without a place: the card at the address, a GPU within the processor, or a new card.
size_t place_for(Session &session, const std::string &address)
{
    std::vector<Card> &cards = session.machine.cards;
    for (size_t i = 0; i < cards.size(); ++i)
        if (!address.empty() && address == cards[i].info.pci) return i;
    for (size_t i = 0; i < cards.size(); ++i)
        if (is_nvidia(cards[i].info) && cards[i].info.kind == YOKE_CARD_INTEGRATED &&
            !session.known[i].handle)
            return i;
    Card card = unknown_card();
    card.info.kind = YOKE_CARD_GPU;
    put(card.info.pci, address);
    put_nvidia(card.info);
    const auto place = std::find_if(cards.begin(), cards.end(), [&](const Card &other) {
        return std::string_view(other.info.pci) > address;
    });
    const auto index = place - cards.begin();
    cards.insert(place, card);
    session.known.insert(session.known.begin() + index, Known{});
    return static_cast<size_t>(index);
}

void find_by_index(Session &session, unsigned count)
{
    for (unsigned i = 0; i < count; ++i) {
        Handle handle = nullptr;
        if (session.call(session.api.by_index, i, &handle) != kSuccess) continue;
        const size_t card = place_for(session, address_by_handle(session, handle));
        if (session.known[card].handle) continue;
        session.known[card].handle = handle;
        // NVML did not show the card at the bus's address.
        Card &found = session.machine.cards[card];
        if (found.rejected == Reason::kNotShown) reject(found, {});
    }
}

}  // namespace

void find_cards(Session &session)
{
    const int found = find_by_address(session);
    unsigned count = 0;
    if (session.call(session.api.device_count, &count) != kSuccess) return;
    const std::vector<Card> &cards = session.machine.cards;
    const bool asleep = std::any_of(cards.begin(), cards.end(),
                                    [](const Card &card) { return card.info.asleep == 1; });
    // A search by index would start every card, sleeping cards too.
    const bool missing = found < 0 || (session.links && static_cast<int>(count) > found);
    if (missing && !asleep) find_by_index(session, count);
}

std::string address_of(const PciInfo &info)
{
    const std::string address = pci_address(std::string(info.address, strnlen(info.address, 32)));
    if (!address.empty()) return address;
    return pci_address(std::string(info.address_short, strnlen(info.address_short, 16)));
}

}  // namespace yoke::nvml
