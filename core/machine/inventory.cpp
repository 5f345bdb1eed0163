#include "core/machine/inventory.h"

#include "core/machine/files.h"

#include <strings.h>
#include <cmath>

namespace yoke {

namespace {

// Returns whether two texts are equal, in upper or lower case.
bool is_equal(std::string_view a, std::string_view b)
{
    return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Card unknown_card()
{
    Card card{};
    yoke_card_info &info = card.info;
    info.struct_size = sizeof info;
    for (int32_t *field : {&info.index,
                           &info.kind,
                           &info.parent,
                           &info.pci_id,
                           &info.minor,
                           &info.nvml_index,
                           &info.visible,
                           &info.present,
                           &info.asleep,
                           &info.cc_major,
                           &info.cc_minor,
                           &info.multiprocessors,
                           &info.numa_node,
                           &info.process_count,
                           &info.hidden_processes,
                           &info.ecc,
                           &info.remap_pending,
                           &info.remap_failed,
                           &info.mig,
                           &info.mig_instances,
                           &info.compute_mode,
                           &info.persistence,
                           &info.mps,
                           &info.vgpu,
                           &info.vgpu_licensed,
                           &info.link_generation,
                           &info.link_generation_max,
                           &info.link_width,
                           &info.link_width_max,
                           &info.nvlinks,
                           &info.nvlinks_active,
                           &info.is_egpu,
                           &info.display})
        *field = -1;
    for (int64_t *field :
         {&info.memory_total, &info.memory_free, &info.memory_used, &info.memory_reserved,
          &info.hidden_memory, &info.ecc_uncorrected, &info.ecc_corrected, &info.link_replays})
        *field = -1;
    for (double *field :
         {&info.utilization, &info.memory_utilization, &info.sm_clock, &info.sm_clock_max,
          &info.memory_clock, &info.memory_clock_max, &info.power, &info.power_limit,
          &info.power_limit_max, &info.temperature, &info.temperature_limit, &info.enclosure_rate})
        *field = NAN;
    return card;
}

void reject(Card &card, const Rejection &rejection)
{
    card.rejected = rejection.reason;
    put(card.info.reason, rejection.text);
}

std::string_view bare_uuid(std::string_view uuid)
{
    const std::string_view prefix = uuid.substr(0, 4);
    const bool has_one = is_equal(prefix, "gpu-") || is_equal(prefix, "mig-");
    return has_one ? uuid.substr(4) : uuid;
}

bool is_same_uuid(std::string_view a, std::string_view b)
{
    return is_equal(bare_uuid(a), bare_uuid(b));
}

std::string nvml_failure_text(const Machine &machine)
{
    return text_of(machine.nvml.failure, machine.driver, machine.nvml.version);
}

std::string under_sysroot(std::string_view path)
{
    return configured_root().path(path);
}

}  // namespace yoke
