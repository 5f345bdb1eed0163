// The links between cards as NVML reports them, because NVML knows NVLink, and the parts of the bus hidden by a
// virtual machine.
#include "core/machine/nvml_session.h"

#include "core/machine/topology.h"

#include <algorithm>

namespace yoke::nvml {

namespace {

// Destinations of a card's active NVLinks.
struct Ends {
    std::vector<int32_t> cards;  // how many to each card
    int32_t switches = 0;        // links into switches, which reach every card on the switch
};

size_t card_at(const Machine &machine, const std::string &address)
{
    size_t i = 0;
    while (i < machine.cards.size() &&
           (machine.cards[i].info.kind == YOKE_CARD_MIG || address != machine.cards[i].info.pci))
        ++i;
    return i;
}

Ends ends_of(Session &session, size_t card)
{
    Asker asker(session, card);
    Ends ends{std::vector<int32_t>(session.machine.cards.size()), 0};
    for (unsigned link = 0; link < kMaxLinks; ++link) {
        if (!(session.known[card].active_nvlinks >> link & 1)) continue;
        int type = -1;
        asker.ask(asker.api().nvlink_remote_type, link, &type);
        PciInfo remote{};
        if (type == kLinkToSwitch)
            ++ends.switches;
        else if (asker.ask(asker.api().nvlink_remote, link, &remote)) {
            const size_t other = card_at(session.machine, address_of(remote));
            // For drivers without link types, an unknown address is a switch's.
            if (other < ends.cards.size())
                ++ends.cards[other];
            else if (type != kLinkToGpu)
                ++ends.switches;
        }
    }
    return ends;
}

void ask_pair(Session &session, size_t a, size_t b, yoke_card_link &link)
{
    Asker asker(session, a);
    const Api &api = asker.api();
    const Handle other = session.known[b].handle;
    int level = -1, read = -1, write = -1;
    if (asker.ask(api.common_ancestor, other, &level) && level >= 0) link.path = level;
    if (asker.ask(api.peer_status, other, kPeerRead, &read) &&
        asker.ask(api.peer_status, other, kPeerWrite, &write))
        link.peer = read == kPeerOk && write == kPeerOk;
}

bool answers(const Session &session, size_t card)
{
    const yoke_card_info &info = session.machine.cards[card].info;
    return session.known[card].handle && info.kind != YOKE_CARD_MIG && info.present != 0;
}

}  // namespace

void ask_links(Session &session)
{
    Machine &machine = session.machine;
    link_by_bus(machine);
    const size_t count = machine.cards.size();
    std::vector<Ends> ends;
    for (size_t i = 0; i < count; ++i)
        ends.push_back(session.known[i].active_nvlinks ? ends_of(session, i)
                                                       : Ends{std::vector<int32_t>(count), 0});
    for (size_t a = 0; a < count; ++a) {
        for (size_t b = a + 1; b < count; ++b) {
            if (!answers(session, a) || !answers(session, b)) continue;
            yoke_card_link link = machine.links[a * count + b];
            ask_pair(session, a, b, link);
            link.nvlinks = std::max(ends[a].cards[b], ends[b].cards[a]) +
                           std::min(ends[a].switches, ends[b].switches);
            label_link(link);
            machine.links[a * count + b] = machine.links[b * count + a] = link;
        }
    }
}

}  // namespace yoke::nvml
