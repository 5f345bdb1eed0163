// How a card is joined: PCI Express, NVLink, and the way to other cards.
#include <algorithm>
#include <cstring>

#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

constexpr uint kMaxLinks = 18;

int gpu_node(const Gpu &gpu)
{
    return gpu.keys.value("numa_node", -1);
}

enum Level { kBoard = 0, kSwitch = 10, kSwitches = 20, kHostBridge = 30, kNode = 40, kSystem = 50 };

// Returns the highest level on the path between two cards.
int level_between(const Gpu &a, const Gpu &b)
{
    if (a.keys.contains("board") && a.keys["board"] == b.keys.value("board", -1)) return kBoard;
    for (size_t i = 0; i < a.bridges.size(); ++i) {
        const auto found = std::find(b.bridges.begin(), b.bridges.end(), a.bridges[i]);
        if (found == b.bridges.end()) continue;
        // Two ports below the first common bridge belong to a single switch.
        return std::max<size_t>(i, static_cast<size_t>(found - b.bridges.begin())) <= 1 ? kSwitch
                                                                                        : kSwitches;
    }
    const auto root = [](const Gpu &gpu) {
        return (gpu.bridges.empty() ? gpu.text("pci") : gpu.bridges.back()).substr(0, 7);
    };
    if (root(a) == root(b)) return kHostBridge;
    const int node = gpu_node(a);
    return node >= 0 && node == gpu_node(b) ? kNode : kSystem;
}

// A call about two cards.
template <class Work>
int on_pair(const char *call, Handle *a, Handle *b, Pointers out, Work work)
{
    return on_gpu(call, a, out, [&](const Scenario &all, const Gpu &first) {
        if (const Return wrong = look_up(all, b, false)) return wrong;
        return work(all, first, all.gpus[static_cast<size_t>(b->gpu)]);
    });
}

// A call about one NVLink of a card.
template <class Work>
int on_link(const char *call, Handle *device, uint link, Pointers out, Work work)
{
    return on_gpu(call, device, out, [&](const Scenario &all, const Gpu &gpu) -> Return {
        if (link >= kMaxLinks) return kInvalidArgument;
        if (link >= gpu.keys.value("nvlinks", 0u)) return kNotSupported;
        return work(all, gpu);
    });
}

bool is_active(const Gpu &gpu, uint link)
{
    return link < gpu.keys.value("nvlinks_active", 0u);
}

// Returns the card at the other end of a link, -1 for a switch or none.
int peer_of(const Scenario &all, const Gpu &gpu, uint link)
{
    if (all.switch_links()) return -1;
    for (const Gpu &other : all.gpus) {
        const auto links = static_cast<uint>(all.links(gpu.number, other.number));
        if (link < links) return other.number;
        link -= links;
    }
    return -1;
}

Return remote(const Scenario &all, const Gpu &gpu, uint link, PciInfo *out)
{
    if (!is_active(gpu, link)) return kNotSupported;
    const int peer = peer_of(all, gpu, link);
    uint bus = 5 + link % 4, function = 0;  // bus of a switch, with four switches in all
    if (peer >= 0) {
        const std::string address = all.gpus[static_cast<size_t>(peer)].text("pci");
        sscanf(address.c_str(), "%*x:%x:%x", &bus, &function);
    }
    memset(out, 0, sizeof *out);
    out->bus = bus;
    out->device = function;
    out->pci_id = peer < 0 ? 0x22a310deu : 0;
    snprintf(out->legacy_id, sizeof out->legacy_id, "0000:%02X:%02X.0", bus & 255, function & 255);
    snprintf(out->id, sizeof out->id, "00000000:%02X:%02X.0", bus, function);
    return kSuccess;
}

// Returns NVML_P2P_STATUS_*: 0 fine, 1 not supported by the chipset, 2 not by the card, 5 not at all.
int peer_status(const Scenario &all, const Gpu &a, const Gpu &b, int what)
{
    const bool nvlink = all.links(a.number, b.number) > 0;
    if (what == 2) return nvlink ? 0 : 5;
    if (nvlink) return 0;
    if (!a.keys.value("p2p", true) || !b.keys.value("p2p", true)) return 2;
    return level_between(a, b) <= kNode ? 0 : 1;
}

}  // namespace

YOKE_FAKE_LINK(nvmlDeviceGetCurrPcieLinkGeneration, "generation", "generation_max")
YOKE_FAKE_LINK(nvmlDeviceGetCurrPcieLinkWidth, "width", "width_max")
YOKE_FAKE_LINK(nvmlDeviceGetMaxPcieLinkGeneration, "slot_generation", "generation_max")
YOKE_FAKE_LINK(nvmlDeviceGetMaxPcieLinkWidth, "slot_width", "width_max")
YOKE_FAKE_LINK(nvmlDeviceGetGpuMaxPcieLinkGeneration, "generation_max", "generation")

EXPORT int nvmlDeviceGetPcieReplayCounter(Handle *device, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (!gpu.keys.contains("link")) return kNotSupported;
        *out = gpu.keys["link"].value("replays", 0u);
        return kSuccess;
    });
}

// Megatransfers per second of a lane.
EXPORT int nvmlDeviceGetPcieSpeed(Handle *device, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        constexpr uint kSpeeds[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
        if (!gpu.keys.contains("link")) return kNotSupported;
        *out = kSpeeds[std::min(gpu.keys["link"].value("generation", 0u), 6u)];
        return kSuccess;
    });
}

// 0: sent, 1: received; in KB per second.
EXPORT int nvmlDeviceGetPcieThroughput(Handle *device, int counter, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        if (counter < 0 || counter > 1) return kInvalidArgument;
        *out = gpu.keys.value(counter ? "pcie_rx" : "pcie_tx", 0u);
        return gpu.keys.contains("link") ? kSuccess : kNotSupported;
    });
}

EXPORT int nvmlDeviceGetNvLinkState(Handle *device, uint link, int *active)
{
    return on_link(__func__, device, link, {active}, [&](const Scenario &, const Gpu &gpu) {
        *active = is_active(gpu, link);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetNvLinkVersion(Handle *device, uint link, uint *version)
{
    return on_link(__func__, device, link, {version}, [&](const Scenario &, const Gpu &gpu) {
        return tell(gpu, "nvlink_version", version);
    });
}

// 0: between cards, 1: to the host's memory, 2, 3: atomics, 4: a bridge, 5: valid.
EXPORT int nvmlDeviceGetNvLinkCapability(Handle *device, uint link, int what, uint *out)
{
    return on_link(__func__, device, link, {out}, [&](const Scenario &all, const Gpu &gpu) {
        if (what < 0 || what > 5) return kInvalidArgument;
        *out = what == 4 ? peer_of(all, gpu, link) >= 0 : what != 1 && what != 3;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle *device, uint link, PciInfo *out)
{
    return on_link(__func__, device, link, {out}, [&](const Scenario &all, const Gpu &gpu) {
        return remote(all, gpu, link, out);
    });
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo(Handle *device, uint link, PciInfo *out)
{
    return on_link(__func__, device, link, {out}, [&](const Scenario &all, const Gpu &gpu) {
        PciInfo whole;
        const Return code = remote(all, gpu, link, &whole);
        if (!code) memcpy(out, &whole, offsetof(PciInfo, id));
        return code;
    });
}

// Returns a remote type. 0: a card, 2: a switch, 255: no answer.
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(Handle *device, uint link, int *type)
{
    return on_link(__func__, device, link, {type}, [&](const Scenario &all, const Gpu &gpu) {
        *type = !is_active(gpu, link) ? 255 : peer_of(all, gpu, link) >= 0 ? 0 : 2;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetNvLinkErrorCounter(Handle *device, uint link, int counter, ulonglong *out)
{
    return on_link(__func__, device, link, {out}, [&](const Scenario &, const Gpu &) {
        if (counter < 0 || counter > 4) return kInvalidArgument;
        *out = 0;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetTopologyCommonAncestor(Handle *a, Handle *b, int *level)
{
    return on_pair(__func__, a, b, {level},
                   [&](const Scenario &, const Gpu &first, const Gpu &second) {
                       if (first.number == second.number) return kInvalidArgument;
                       *level = level_between(first, second);
                       return kSuccess;
                   });
}

// Reports the cards at a level.
EXPORT int nvmlDeviceGetTopologyNearestGpus(Handle *device, int level, uint *count, Handle **out)
{
    return on_gpu(__func__, device, {count}, [&](const Scenario &all, const Gpu &gpu) {
        if (level < 0 || level > kSystem || level % 10) return kInvalidArgument;
        std::vector<Handle *> found;
        for (const int one : all.order)
            if (one != gpu.number &&
                level_between(gpu, all.gpus[static_cast<size_t>(one)]) == level)
                found.push_back(handle_of(one));
        const uint room = *count;
        if (!out || room == 0) {  // how many there are
            *count = static_cast<uint>(found.size());
            return kSuccess;
        }
        return tell_list(found, count, out);
    });
}

EXPORT int nvmlDeviceGetP2PStatus(Handle *a, Handle *b, int what, int *status)
{
    return on_pair(__func__, a, b, {status},
                   [&](const Scenario &all, const Gpu &first, const Gpu &second) {
                       if (what < 0 || what > 4 || first.number == second.number)
                           return kInvalidArgument;
                       *status = peer_status(all, first, second, what);
                       return kSuccess;
                   });
}

EXPORT int nvmlDeviceOnSameBoard(Handle *a, Handle *b, int *same)
{
    return on_pair(__func__, a, b, {same},
                   [&](const Scenario &, const Gpu &first, const Gpu &second) {
                       *same = level_between(first, second) == kBoard;
                       return kSuccess;
                   });
}
