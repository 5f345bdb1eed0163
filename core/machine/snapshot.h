// snapshot.h: takes the inventory of the machine.
//
// A snapshot is put together from four sources, each a file of its own, in this order: the PCI bus (sysfs.h), what each
// vendor's driver tells (vendor.h; NVIDIA's management library answers within a deadline or is left behind), /proc and
// cgroups, and the variables of the environment (visibility.h). CUDA is not touched. YOKE_SYSROOT puts another root
// before /sys, /proc and /dev; YOKE_NVML_PATH names another management library: tests and recorded machines come in
// through these.
#pragma once

#include "core/base/refcount.h"
#include "core/machine/inventory.h"

#include <map>
#include <string>

namespace yoke {

// Takes a snapshot of the machine now, and returns it.
Machine take_inventory();

// Returns a snapshot of a single card, by its address in sysfs: without links, networks and other cards.
Machine look_at_card(const std::string &address);

}  // namespace yoke

// The snapshot behind a handle.
struct yoke_inventory final : yoke::RefCounted {
    yoke::Machine machine;
    std::string topology;
    std::map<std::string, std::string> facts;  // facts in words, by key

protected:
    void destroy() noexcept override { delete this; }
};
