// The repeated parts of a card: processes, and the instances of a partitioned card.
#include "core/machine/nvml_session.h"

#include "core/base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace yoke::nvml {

namespace {

// Lists processes to `found`, and returns NVML's code. Processes come and go between the question for the count and
// the question for the list, so up to five tries are made.
template <class Entry>
int list_processes(Asker &asker, const Symbol<Handle, unsigned *, Entry *> &symbol,
                   std::vector<Entry> &found)
{
    found.resize(64);
    for (int tries = 0;; ++tries) {
        unsigned count = static_cast<unsigned>(found.size());
        const int code = asker.code(symbol, &count, found.data());
        if (code != kInsufficientSize || tries == 4) {
            found.resize(code == kSuccess ? std::min<size_t>(count, found.size()) : 0);
            return code;
        }
        found.resize(std::max<size_t>(count, found.size()) * 2);
    }
}

struct ProcessCalls {
    const Symbol<Handle, unsigned *, Process *> &v3, &v2;
    const Symbol<Handle, unsigned *, ProcessV1 *> &v1;
};

// Returns whether _v3 writes entries of 32 bytes, as in the first drivers of branch 535; their _v2 does not.
bool has_wide_entries(const Machine &machine)
{
    int major = 0, minor = 0;
    return sscanf(machine.driver.c_str(), "%d.%d", &major, &minor) == 2 && major == 535 &&
           minor >= 43 && minor < 98;
}

bool list_any(Asker &asker, const ProcessCalls &calls, std::vector<Process> &found)
{
    if (!has_wide_entries(asker.session().machine) &&
        list_processes(asker, calls.v3, found) == kSuccess)
        return true;
    if (list_processes(asker, calls.v2, found) == kSuccess) return true;
    std::vector<ProcessV1> old;
    if (list_processes(asker, calls.v1, old) != kSuccess) return false;
    for (const ProcessV1 &each : old) found.push_back({each.pid, each.memory, ~0u, ~0u});
    return true;
}

void add_processes(Card &card, const std::vector<Process> &found, bool compute)
{
    for (const Process &each : found) {
        const bool known = std::any_of(card.processes.begin(), card.processes.end(),
                                       [&](const yoke_card_process &one) {
                                           return one.pid == static_cast<int32_t>(each.pid);
                                       });
        if (known) continue;  // the process also draws
        yoke_card_process process{};
        process.struct_size = sizeof process;
        process.pid = static_cast<int32_t>(each.pid);
        process.visible = -1;
        process.compute = compute;
        process.memory_used = each.memory == kNoValue ? -1 : static_cast<int64_t>(each.memory);
        card.processes.push_back(process);
    }
}

// Returns an instance with the facts of the whole card.
Card instance_of(const Card &parent)
{
    Card card = unknown_card();
    yoke_card_info &info = card.info;
    const yoke_card_info &whole = parent.info;
    card.bridges = parent.bridges;
    info.kind = YOKE_CARD_MIG;
    info.present = 1;
    info.mig = 1;
    put(info.name, std::string(whole.name) + " MIG");
    put(info.vendor, whole.vendor);
    put(info.pci, whole.pci);
    put(info.driver, whole.driver);
    info.pci_id = whole.pci_id;
    info.minor = whole.minor;
    info.nvml_index = whole.nvml_index;
    info.cc_major = whole.cc_major;
    info.cc_minor = whole.cc_minor;
    info.numa_node = whole.numa_node;
    info.asleep = whole.asleep;
    info.is_egpu = whole.is_egpu;
    info.ecc = whole.ecc;
    info.compute_mode = whole.compute_mode;
    info.persistence = whole.persistence;
    info.link_generation = whole.link_generation;
    info.link_generation_max = whole.link_generation_max;
    info.link_width = whole.link_width;
    info.link_width_max = whole.link_width_max;
    info.nvlinks = info.nvlinks_active = 0;
    return card;
}

void ask_instance(Session &session, size_t card)
{
    Asker asker(session, card);
    const Api &api = asker.api();
    char name[kNameSize] = "", uuid[kUuidSize] = "";
    if (asker.ask(api.name, name, kNameSize) && strstr(name, "MIG")) put(asker.info().name, name);
    if (asker.ask(api.uuid, uuid, kUuidSize)) put(asker.info().uuid, uuid);
    unsigned number = 0;
    if (asker.ask(api.gpu_instance, &number))
        asker.card().gpu_instance = static_cast<int32_t>(number);
    if (asker.ask(api.compute_instance, &number))
        asker.card().compute_instance = static_cast<int32_t>(number);
    ask_memory(asker);
    ask_multiprocessors(asker);
    ask_processes(asker);
}

}  // namespace

void ask_processes(Asker &asker)
{
    const Api &api = asker.api();
    std::vector<Process> compute, graphics, served;
    const bool told = list_any(
        asker, {api.compute_processes_v3, api.compute_processes_v2, api.compute_processes_v1},
        compute);
    if (!told) return;
    list_any(asker,
             {api.graphics_processes_v3, api.graphics_processes_v2, api.graphics_processes_v1},
             graphics);
    const bool mps = list_processes(asker, api.mps_processes_v3, served) == kSuccess;
    add_processes(asker.card(), compute, true);
    add_processes(asker.card(), served, true);
    add_processes(asker.card(), graphics, false);
    asker.info().mps = !served.empty() ? 1 : mps ? 0 : -1;
    asker.info().process_count = static_cast<int32_t>(asker.card().processes.size());
}

size_t ask_instances(Session &session, size_t card)
{
    Asker parent(session, card);
    if (parent.info().mig != 1) {
        if (parent.info().mig == 0) parent.info().mig_instances = 0;
        return 0;
    }
    unsigned most = 0;
    if (!parent.ask(parent.api().mig_max, &most)) return 0;
    size_t added = 0;
    for (unsigned i = 0; i < most; ++i) {
        Handle handle = nullptr;
        if (!parent.ask(parent.api().mig_device, i, &handle)) continue;
        ++added;
        const auto place = static_cast<std::ptrdiff_t>(card + added);
        const Card instance = instance_of(parent.card());
        session.machine.cards.insert(session.machine.cards.begin() + place, instance);
        session.known.insert(session.known.begin() + place, Known{handle, 0});
        ask_instance(session, card + added);
    }
    parent.info().mig_instances = static_cast<int32_t>(added);
    return added;
}

}  // namespace yoke::nvml
