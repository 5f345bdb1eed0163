/*
 * yoke/inventory.h: devices of the machine, and their state.
 *
 * An inventory is a snapshot of every GPU of the machine, usable or not, taken from the PCI bus, the driver's
 * management library (NVML) and /proc. Taking a snapshot creates no CUDA context, loads no CUDA library and leaves
 * the process fit to fork. Cards stand in the order of their PCI addresses; a MIG instance follows its card.
 *
 * Unknown values are -1 (a number), NaN (a measure) or "" (a text); `reason` says why a card is not usable.
 */
#ifndef YOKE_INVENTORY_H
#define YOKE_INVENTORY_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_inventory yoke_inventory; /* a snapshot; never changes */

/* ---- A card -------------------------------------------------------------------------------------- */

#define YOKE_CARD_GPU 1 /* a card of its own */
#define YOKE_CARD_MIG 2 /* an instance of a partitioned card (`parent`) */
#define YOKE_CARD_INTEGRATED \
    3 /* part of the processor's chip: Jetson, an integrated Intel or AMD */

#define YOKE_COMPUTE_DEFAULT 0
#define YOKE_COMPUTE_PROHIBITED 2
#define YOKE_COMPUTE_EXCLUSIVE 3

/* Why clocks are held down, as bits of `throttle` (NVML's numbers). */
#define YOKE_THROTTLE_POWER_CAP 0x4
#define YOKE_THROTTLE_HW_SLOWDOWN 0x8
#define YOKE_THROTTLE_SW_THERMAL 0x20
#define YOKE_THROTTLE_HW_THERMAL 0x40
#define YOKE_THROTTLE_POWER_BRAKE 0x80

/* Text is UTF-8 and always ends with NUL. Yes-or-no fields are 1, 0 or -1 (not known). */
typedef struct yoke_card_info {
    uint32_t struct_size; /* set by the caller */
    int32_t index;        /* place in the inventory */
    int32_t kind;         /* YOKE_CARD_* */
    int32_t parent;       /* MIG instance: the card's index; else -1 */

    char name[96];      /* "NVIDIA H200" */
    char vendor[16];    /* "nvidia", "amd", "intel", or the number of the PCI vendor in hex */
    char uuid[96];      /* "GPU-8932f937-…", "MIG-…" */
    char pci[16];       /* "0000:65:00.0", lower case */
    char driver[24];    /* kernel driver that holds the card: "nvidia", "nouveau", "vfio-pci" */
    char reason[384];   /* why the card cannot be used, with a remedy; "" if usable */
    int32_t pci_id;     /* vendor << 16 | device, as 0x10de2335 */
    int32_t minor;      /* N of /dev/nvidiaN */
    int32_t nvml_index; /* the index of nvidia-smi */
    int32_t
        visible; /* index under CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; -1: hidden by them */
    int32_t present; /* 0: it was there and no longer answers */
    int32_t asleep;  /* suspended by runtime power management; not woken for the snapshot */

    int32_t cc_major, cc_minor; /* compute capability */
    int32_t multiprocessors;
    int32_t numa_node;
    int64_t memory_total, memory_free, memory_used, memory_reserved; /* bytes */
    int64_t hidden_memory;    /* bytes in use by no visible process */
    int32_t process_count;    /* processes reported by the driver */
    int32_t hidden_processes; /* processes outside this PID namespace */

    double utilization, memory_utilization;     /* 0 to 1, over the driver's last period */
    double sm_clock, sm_clock_max;              /* hertz */
    double memory_clock, memory_clock_max;      /* hertz */
    double power, power_limit, power_limit_max; /* watts */
    double temperature, temperature_limit;      /* degrees Celsius; limit: where it slows down */
    uint64_t throttle;                          /* YOKE_THROTTLE_* */

    int32_t ecc;                         /* on or off */
    int32_t remap_pending, remap_failed; /* memory rows or pages: a reset is due; the card is due */
    int32_t mig;                         /* partitioning is on */
    int64_t ecc_uncorrected, ecc_corrected; /* since the driver was loaded */
    int32_t mig_instances;
    int32_t compute_mode; /* YOKE_COMPUTE_* */
    int32_t persistence;
    int32_t mps; /* a Multi-Process Service daemon answers for it */
    int32_t vgpu, vgpu_licensed;
    int32_t link_generation, link_generation_max; /* PCI Express */
    int32_t link_width, link_width_max;           /* lanes */
    int64_t link_replays;
    int32_t nvlinks, nvlinks_active;
    int32_t is_egpu;       /* connected by Thunderbolt, USB4 or a removable slot */
    int32_t display;       /* a monitor is attached or a desktop runs on it */
    double enclosure_rate; /* eGPU: bits per second of the cable */
    char enclosure[64];    /* eGPU: vendor and name of the dock */
} yoke_card_info;

/* Takes a snapshot within a bounded time. If the management library does not answer within its deadline, the call
 * goes on without the library and gives the known facts with the reason. Errors: VALUE for a variable of the
 * environment that cannot be read; OOM. [any-thread] */
YOKE_API yoke_status yoke_inventory_take(yoke_inventory **out);

/* Adds a reference and returns the inventory. NULL is passed through. [any-thread] */
YOKE_API yoke_inventory *yoke_inventory_retain(yoke_inventory *inventory);

/* Releases a reference. NULL is ignored. [any-thread] */
YOKE_API void yoke_inventory_release(yoke_inventory *inventory);

/* Returns the number of cards, MIG instances among them; -1 after a NULL inventory. [any-thread] */
YOKE_API int32_t yoke_inventory_count(yoke_inventory *inventory);

/* Returns card `index`. Errors: INDEX out of range, VALUE for a struct_size that no version had. [any-thread] */
YOKE_API yoke_status yoke_inventory_card(yoke_inventory *inventory, int32_t index,
                                         yoke_card_info *card);

/* Reads a fact about the machine as text, "" if unknown. Keys: "driver" (580.82.07, of the loaded kernel module),
 * "driver_flavor" ("open", "proprietary"), "nvml" (the library's version), "nvml_path", "nvml_problem" (why the
 * management library gave nothing), "cuda_driver" ("13.0", the version supported by the driver), "visible_devices"
 * (the cards cut off by CUDA_VISIBLE_DEVICES, and why), "docks" (docks without authorization), "container",
 * "virtual_machine". Errors: VALUE for another key. [any-thread] */
YOKE_API yoke_status yoke_inventory_fact(yoke_inventory *inventory, const char *key,
                                         const char **text);

/* ---- Processes on a card -------------------------------------------------------------------------- */

typedef struct yoke_card_process {
    uint32_t struct_size;
    int32_t pid;         /* the driver's number: the machine's, when in a container */
    int32_t visible;     /* 1: in this PID namespace */
    int32_t compute;     /* 1: computes; 0: draws */
    int64_t memory_used; /* bytes; -1: unknown */
    char name[64];
    char user[40];
    char container[72]; /* container id from the cgroup; "": none */
} yoke_card_process;

/* Process `which` of a card's process_count. Errors: INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_inventory_process(yoke_inventory *inventory, int32_t index, int32_t which,
                                            yoke_card_process *process);

/* ---- How cards are joined -------------------------------------------------------------------------- */

/* NVML's levels: what the way between two cards crosses. */
#define YOKE_PATH_SELF (-1)
#define YOKE_PATH_BOARD 0     /* two chips of one board */
#define YOKE_PATH_SWITCH 10   /* PIX: one PCI Express switch */
#define YOKE_PATH_SWITCHES 20 /* PXB: several switches, no host bridge */
#define YOKE_PATH_BRIDGE 30   /* PHB: a host bridge */
#define YOKE_PATH_NODE 40     /* NODE: host bridges of one NUMA node */
#define YOKE_PATH_SYSTEM 50   /* SYS: between NUMA nodes; also where nothing is known */

typedef struct yoke_card_link {
    uint32_t struct_size;
    int32_t path;    /* YOKE_PATH_* over PCI Express */
    int32_t nvlinks; /* direct or through a switch; 0: none */
    int32_t peer;    /* peer-to-peer reads and writes: 1, 0, -1 not known */
    char label[16];  /* "NV18", "PIX", "SYS", "X" for a card and itself */
} yoke_card_link;

/* Returns the link between two cards. Errors: INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_inventory_link(yoke_inventory *inventory, int32_t a, int32_t b,
                                         yoke_card_link *link);

typedef struct yoke_network_card {
    uint32_t struct_size;
    int32_t numa_node;
    int32_t active; /* its port is up */
    int32_t port;
    double rate;   /* bits per second */
    char name[32]; /* "mlx5_0" */
    char pci[16];
    char layer[16]; /* "InfiniBand" or "Ethernet" (RoCE) */
    char state[32]; /* "ACTIVE", "DOWN", from the kernel */
} yoke_network_card;

/* Counts the InfiniBand and RoCE ports; -1 after a NULL inventory. [any-thread] */
YOKE_API int32_t yoke_inventory_network_count(yoke_inventory *inventory);

/* Returns port `index`, and its path from a card (`path` may be NULL). Errors: INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_inventory_network(yoke_inventory *inventory, int32_t index, int32_t card,
                                            yoke_network_card *network, int32_t *path);

/* Returns the name of a path, as in yoke_card_link.label: "X", "PIX", "PXB", "PHB", "NODE"; "SYS" for the rest.
 * Static. [any-thread] */
YOKE_API const char *yoke_path_label(int32_t path);

/* Returns the matrix of links as text, a row a card, as `nvidia-smi topo -m` prints it. Borrowed from the inventory.
 * NULL after a NULL inventory. [any-thread] */
YOKE_API const char *yoke_inventory_topology(yoke_inventory *inventory);

/* ---- A device, now -------------------------------------------------------------------------------- */

/* Reads the facts reported by the backend at the device's opening: name, UUID, PCI address, compute capability,
 * multiprocessors, total memory. Changing and unknown values are set as described above. Nothing is measured.
 * [any-thread] */
YOKE_API yoke_status yoke_device_card(yoke_device *device, yoke_card_info *card);

/* Reads the inventory's facts of an open device, measured now: utilization, memory, watts, temperature, clocks. The
 * CPU is a card too: its name, memory, utilization and NUMA node. Errors: UNAVAILABLE, with the reason, if no source
 * has facts of the device; DEVICE_LOST if the device is gone. [any-thread] */
YOKE_API yoke_status yoke_device_sample(yoke_device *device, yoke_card_info *card);

/* ---- The catalog ----------------------------------------------------------------------------------- */

/* Data sheet of a model; rates are dense, in operations per second. 0: the model has no such rate, or the rate is not
 * published. */
typedef struct yoke_catalog_card {
    uint32_t struct_size;
    int32_t multiprocessors;
    int32_t cc_major, cc_minor;
    int64_t memory;          /* bytes, as the driver reports the total */
    double memory_bandwidth; /* bytes per second */
    double f64_rate, f32_rate, tf32_rate, f16_rate, bf16_rate, f8_rate, i8_rate;
    double power;                        /* watts of the board */
    double nvlink_bandwidth;             /* bytes per second, both directions together */
    int32_t link_generation, link_width; /* PCI Express */
    const char *name;                    /* "H200 SXM" */
    const char *match;                   /* part of the driver's name, "NVIDIA H200" */
    const char *source;                  /* where the figures stand: the maker's data sheet */
} yoke_catalog_card;

/* Entries of the catalog. [any-thread] */
YOKE_API int32_t yoke_catalog_count(void);

/* Returns entry `index`. Errors: INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_catalog_get(int32_t index, yoke_catalog_card *card);

/* Finds the entry for a card by its name and memory; -1 if there is no entry. [any-thread] */
YOKE_API int32_t yoke_catalog_find(const char *name, int64_t memory);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_INVENTORY_H */
