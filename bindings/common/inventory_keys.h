/*
 * inventory_keys.h: names that go with the numbers and keys of yoke/inventory.h, for the bindings. C99.
 */
#ifndef YOKE_BINDINGS_INVENTORY_KEYS_H
#define YOKE_BINDINGS_INVENTORY_KEYS_H

#include "yoke/inventory.h"

/* The keys of yoke_inventory_fact, ended by NULL. */
static const char *const yoke_fact_keys[] = {
    "driver",      "driver_flavor",   "nvml",  "nvml_path", "nvml_problem",
    "cuda_driver", "visible_devices", "docks", "container", "virtual_machine",
    NULL};

static inline const char *yoke_card_kind_name(int32_t kind)
{
    return kind == YOKE_CARD_MIG ? "mig" : kind == YOKE_CARD_INTEGRATED ? "integrated" : "gpu";
}

/* Bits of `throttle` and their names, ended by a name of NULL. */
static const struct {
    uint64_t bit;
    const char *name;
} yoke_throttle_names[] = {
    {YOKE_THROTTLE_POWER_CAP, "power_cap"},     {YOKE_THROTTLE_HW_SLOWDOWN, "hw_slowdown"},
    {YOKE_THROTTLE_SW_THERMAL, "sw_thermal"},   {YOKE_THROTTLE_HW_THERMAL, "hw_thermal"},
    {YOKE_THROTTLE_POWER_BRAKE, "power_brake"}, {0, NULL}};

#endif /* YOKE_BINDINGS_INVENTORY_KEYS_H */
