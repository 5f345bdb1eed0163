"""Keys of a scenario, their types, and the messages for mistakes.

A type is a function of (place, value) that raises Mistake, or a result of the makers below: record, list_of, map_of, one_of,
either. `place` says where the value stands, as in "gpus[3].memory".
"""
import difflib
import json
import re

UNITS = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


class Mistake(ValueError):
    """Invalid scenario; the text names the place, the value and the allowed values."""


def wrong(place, value, allowed):
    shown = json.dumps(value, ensure_ascii=False)
    raise Mistake(f"{place}: {shown if len(shown) <= 80 else shown[:77] + '...'} is not {allowed}")


def nearest(word, words):
    found = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"; did you mean {json.dumps(found[0])}?" if found else ""


def text(place, value):
    if not isinstance(value, str):
        wrong(place, value, "text")


def integer(place, value):
    if isinstance(value, bool) or not isinstance(value, int):
        wrong(place, value, "a whole number")


def count(place, value):
    integer(place, value)
    if value < 0:
        wrong(place, value, "a whole number of 0 or more")


def number(place, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        wrong(place, value, "a number")


def flag(place, value):
    if not isinstance(value, bool):
        wrong(place, value, "true or false")


def size(place, value):
    bytes_of(value, place)


def bytes_of(value, place="size"):
    """Returns a size in bytes: a whole number of them, or text with a unit."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(\w+)", value) if isinstance(value, str) else None
    if not found or found[2] not in UNITS:
        wrong(place, value, f'a size: bytes as a whole number, or text such as "80GiB" with one of {", ".join(UNITS)}')
    return int(float(found[1]) * UNITS[found[2]])


def matching(pattern, what):
    compiled = re.compile(pattern)

    def check(place, value):
        if not isinstance(value, str) or not compiled.fullmatch(value):
            wrong(place, value, what)
    return check


def one_of(*values):
    def check(place, value):
        if value not in values or isinstance(value, bool):
            close = nearest(value, [v for v in values if isinstance(v, str)]) if isinstance(value, str) else ""
            wrong(place, value, "one of " + ", ".join(json.dumps(v) for v in values) + close)
    return check


def list_of(item, length=None):
    def check(place, value):
        if not isinstance(value, list) or (length is not None and len(value) != length):
            wrong(place, value, "a list" if length is None else f"a list of {length}")
        for index, each in enumerate(value):
            item(f"{place}[{index}]", each)
    return check


def map_of(item, key=text):
    def check(place, value):
        if not isinstance(value, dict):
            wrong(place, value, "an object")
        for name, each in value.items():
            key(f"the name {json.dumps(name)} in {place}", name)
            item(f"{place}.{name}", each)
    return check


def record(required=(), **keys):
    def check(place, value):
        if not isinstance(value, dict):
            wrong(place, value, "an object")
        for name, each in value.items():
            if name not in keys:
                raise Mistake(f"{place} has a key {json.dumps(name)} that is not known{nearest(name, keys)}"
                              f" Known keys: {', '.join(sorted(keys))}")
            keys[name](f"{place}.{name}" if place != "the scenario" else name, each)
        for name in required:
            if name not in value:
                raise Mistake(f"{place} lacks the key {json.dumps(name)}")
    return check


def either(what, *checks):
    def check(place, value):
        for one in checks:
            try:
                return one(place, value)
            except Mistake:
                continue
        wrong(place, value, what)
    return check


PCI = matching(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", 'a PCI address in lower case, as "0000:65:00.0"')
PCI_ID = matching(r"[0-9a-f]{4}:[0-9a-f]{4}", 'the numbers of vendor and device, as "10de:2330"')
HEX4 = matching(r"[0-9a-f]{4}", 'four hexadecimal digits in lower case, as "1002"')
CLASS = matching(r"[0-9a-f]{6}", 'a PCI class of six hexadecimal digits, as "030200"')
CC = matching(r"[0-9]+\.[0-9]", 'a compute capability, as "9.0"')
PATH = matching(r"(?!.*/\.\.(?:/|$))/.+", 'an absolute path without ".."')
MODE = matching(r"[0-7]{3,4}", 'an octal mode, as "0660"')
INDEX = matching(r"[0-9]+", "a whole number")
NVML_CALL = matching(r"nvml[A-Z]\w+", 'the name of an NVML call, as "nvmlDeviceGetTemperature"')
DRIVER = one_of("nvidia", "nvgpu", "nouveau", "vfio-pci", "")
STATUS = one_of("active", "suspended", "suspending", "resuming", "error", "unsupported")

PROCESS = record(pid=count, memory=size, name=text, user=text, visible=flag, container=text, utilization=count,
                 kind=one_of("compute", "graphics", "mps"), instance=count, command=text, required=["pid"])
INSTANCE = record(uuid=matching(r"MIG-.+", 'a UUID that begins with "MIG-"'), profile=text, memory=size, used=size,
                  multiprocessors=count, gpu_instance=count, compute_instance=count, required=["profile", "memory"])
LINK = record(generation=count, generation_max=count, width=count, width_max=count, replays=count,
              slot_generation=count, slot_width=count)
IOMMU = record(group=count, type=text, required=["group"])
GPU_KEYS = dict(
    model=text, name=text, uuid=matching(r"GPU-.+", 'a UUID that begins with "GPU-"'), pci=PCI, pci_id=PCI_ID,
    subsystem_id=PCI_ID, cc=CC, memory=size, used=size, reserved=size, bar1=size, multiprocessors=count, cores=count,
    bus_width=count, serial=text, part=text, vbios=text, utilization=count, memory_utilization=count, sm_clock=count,
    sm_clock_max=count, memory_clock=count, memory_clock_max=count, power=number, power_limit=number,
    power_limit_min=number, power_limit_max=number, power_limit_default=number, energy=number, temperature=integer,
    temperature_slowdown=integer, temperature_shutdown=integer, memory_temperature=integer, fan=count, fans=count,
    throttle=count, performance_state=count, ecc=flag, ecc_pending=flag, ecc_corrected=count, ecc_uncorrected=count,
    remap_pending=flag, remap_failed=flag, remap_corrected=count, remap_uncorrected=count, retired_pages=count,
    retired_pending=flag, mig=flag, mig_instances=list_of(INSTANCE), compute_mode=one_of(0, 1, 2, 3), persistence=flag,
    vgpu=flag, vgpu_licensed=flag, virtualization=one_of("none", "passthrough", "vgpu", "host-vgpu"), link=LINK,
    pcie_tx=count, pcie_rx=count, nvlinks=count, nvlinks_active=count, nvlink_version=count, p2p=flag, display=flag,
    numa_node=integer, minor=count, runtime_status=STATUS, removable=flag, under=PCI, driver=DRIVER, boot_vga=flag,
    board=count, mps=flag, unified=flag, on_bus=flag, iommu=IOMMU, processes=list_of(PROCESS), **{"class": CLASS})
GPU = record(required=["name", "pci", "pci_id", "cc", "memory"], **GPU_KEYS)
CARD = record(vendor=HEX4, device=HEX4, subsystem_id=PCI_ID, **{"class": CLASS}, pci=PCI, driver=text, name=text,
              under=PCI, numa_node=integer, boot_vga=flag, removable=flag, runtime_status=STATUS, display=flag,
              memory=size, required=["vendor", "device", "class", "pci"])
BRIDGE = record(parent=PCI, vendor=HEX4, device=HEX4, removable=flag, driver=text, link=LINK, runtime_status=STATUS, acs=count,
                **{"class": CLASS})
DOCK = record(name=text, vendor=text, generation=one_of(1, 2, 3, 4, 5), authorized=one_of(0, 1, 2), bridge=PCI,
              security=one_of("none", "user", "secure", "dponly", "usbonly", "nopcie"), nvm_version=text, speed=number,
              lanes=count, required=["name", "vendor"])
NETWORK = record(name=text, pci=PCI, pci_id=PCI_ID, layer=one_of("InfiniBand", "Ethernet"), state=text, rate=text,
                 numa_node=integer, under=PCI, iommu=IOMMU, required=["name", "pci"])
INTEGRATED = record(name=text, cc=CC, memory=size, used=size, multiprocessors=count, cores=count, sm_clock=count,
                    sm_clock_max=count, utilization=count, platform=text, required=["name", "cc", "memory"])
SCENARIO = record(
    about=text, extends=text,
    driver=record(version=text, module_version=text, flavor=one_of("open", "proprietary"), cuda=text, loaded=flag, in_kernel=flag,
                  bound=DRIVER, params=map_of(count)),
    nvml=record(present=flag, version=text, missing_symbols=list_of(NVML_CALL), reject_structs=list_of(text),
                init_error=count, errors=map_of(count, NVML_CALL),
                lost=record(gpu=count, after_calls=count, code=count, required=["gpu"]),
                hang=record(call=NVML_CALL, seconds=number, gpu=count, required=["call", "seconds"]),
                order=list_of(count)),
    gpus=list_of(GPU), gpu_defaults=record(**GPU_KEYS), gpu_changes=map_of(record(**GPU_KEYS), INDEX),
    other_cards=list_of(CARD), integrated=INTEGRATED, bridges=map_of(BRIDGE, PCI), thunderbolt=list_of(DOCK),
    nvlink=either('"all:N" (each card has N links to a switch) or a list of [card, card, links]',
                  matching(r"all:[0-9]+", ""), list_of(list_of(count, 3))),
    events=list_of(record(gpu=count, xid=count, required=["gpu", "xid"])), networks=list_of(NETWORK),
    nodes=map_of(text, INDEX), users=map_of(count), files=map_of(text, PATH), modes=map_of(MODE, PATH), absent=list_of(PATH),
    environment=map_of(text, matching(r"[A-Za-z_]\w*", "the name of a variable")),
    probes=map_of(map_of(either("a number, text or an object of them", number, text, map_of(either(
        "a number or text", number, text)))), INDEX))
