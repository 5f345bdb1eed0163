"""The root of a machine: files of /sys, /proc and /dev about the cards, written for a scenario.

Attributes stand where the kernel puts them: devices below /sys/devices in the tree of bridges, with links from /sys/bus and
/sys/class. Files of /dev are plain files, since only root may make devices.
"""
import os
import pathlib
import shutil

import procfs
from schema import Mistake, bytes_of

# Transfers per second of a lane, as the kernel writes them.
SPEEDS = {1: "2.5 GT/s PCIe", 2: "5.0 GT/s PCIe", 3: "8.0 GT/s PCIe", 4: "16.0 GT/s PCIe", 5: "32.0 GT/s PCIe",
          6: "64.0 GT/s PCIe"}
DISPLAY, BRIDGE, INFINIBAND, ETHERNET = "030000", "060400", "020700", "020000"


class SysRoot:
    """Folder that is written as if it were the root."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def at(self, path):
        return self.folder / str(path).lstrip("/")

    def text(self, path, text):
        """A file with its lines ended, as the kernel's attributes are."""
        self.raw(path, f"{text}\n")

    def raw(self, path, text):
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).write_text(text, encoding="utf-8")

    def link(self, path, to):
        """A relative link, both ends below the root."""
        self.at(path).parent.mkdir(parents=True, exist_ok=True)
        self.at(path).symlink_to(os.path.relpath(self.at(to), self.at(path).parent))


def way_up(scenario, address):
    """Returns the bridges from an address to the root, the address first. A circle is a Mistake."""
    bridges, found = scenario.get("bridges", {}), []
    while address is not None:
        if address in found:
            raise Mistake(f"the bridge {address} stands above itself: {' -> '.join([*found, address])}")
        found.append(address)
        address = bridges[address].get("parent")
    return found


def place_of(scenario, address, under):
    """Returns the folder of a PCI device in /sys/devices."""
    chain = way_up(scenario, under) if under else []
    top = chain[-1] if chain else address
    return "/".join([f"/sys/devices/pci{top[:7]}", *reversed(chain), address])


def write_device(root, scenario, address, card, under):
    """Writes the files of any PCI device. Returns the device's folder."""
    place = place_of(scenario, address, under)
    vendor, device = card["ids"]
    root.text(f"{place}/vendor", f"0x{vendor}")
    root.text(f"{place}/device", f"0x{device}")
    root.text(f"{place}/class", f"0x{card['class']}")
    sub_vendor, sub_device = card.get("subsystem_id", "0000:0000").split(":")
    root.text(f"{place}/subsystem_vendor", f"0x{sub_vendor}")
    root.text(f"{place}/subsystem_device", f"0x{sub_device}")
    root.text(f"{place}/numa_node", card.get("numa_node", -1))
    root.text(f"{place}/power/runtime_status", card.get("runtime_status", "active"))
    root.text(f"{place}/power/control", "auto" if card.get("runtime_status", "active") != "active" else "on")
    root.text(f"{place}/enable", 1 if card.get("driver") else 0)
    above = [scenario["bridges"][bridge] for bridge in way_up(scenario, under)] if under else []
    if any(one.get("removable") for one in [card, *above]):
        root.text(f"{place}/removable", "removable")
    write_link_state(root, place, card.get("link"))
    write_iommu_group(root, place, address, card.get("iommu"))
    if card.get("driver"):
        root.at(f"/sys/bus/pci/drivers/{card['driver']}").mkdir(parents=True, exist_ok=True)
        root.link(f"{place}/driver", f"/sys/bus/pci/drivers/{card['driver']}")
        root.link(f"/sys/bus/pci/drivers/{card['driver']}/{address}", place)
    root.link(f"/sys/bus/pci/devices/{address}", place)
    return place


def write_iommu_group(root, place, address, iommu):
    if iommu is None:
        return
    group = f"/sys/kernel/iommu_groups/{iommu['group']}"
    if iommu.get("type"):
        root.text(f"{group}/type", iommu["type"])
    root.link(f"{group}/devices/{address}", place)
    root.link(f"{place}/iommu_group", group)


def write_configuration(root, place, acs):
    """Writes all bytes of a bridge, as the kernel shows them to root: error reporting, a serial number, and ACS at the end."""
    whole = bytearray(4096)
    for at, capability, following in ((0x100, 0x01, 0x148), (0x148, 0x03, 0x160), (0x160, 0x0d, 0)):
        whole[at:at + 4] = (capability | 1 << 16 | following << 20).to_bytes(4, "little")
    whole[0x14c:0x154] = bytes.fromhex("5eced0c0ffee5eed")
    whole[0x164:0x166] = (0x5f).to_bytes(2, "little")
    whole[0x166:0x168] = acs.to_bytes(2, "little")
    root.at(f"{place}/config").write_bytes(whole)


def write_link_state(root, place, link):
    if link is None:
        return
    root.text(f"{place}/current_link_speed", SPEEDS.get(link.get("generation"), "Unknown"))
    root.text(f"{place}/max_link_speed", SPEEDS.get(link.get("generation_max"), "Unknown"))
    root.text(f"{place}/current_link_width", link.get("width", 0))
    root.text(f"{place}/max_link_width", link.get("width_max", 255))


def write_screen(root, place, card, number):
    """The card's place in /sys/class/drm, with one connector."""
    drm = f"{place}/drm/card{number}"
    status = "connected" if card.get("display") else "disconnected"
    root.link(f"{drm}/device", place)
    root.text(f"{drm}/card{number}-DP-1/status", status)
    root.text(f"{drm}/card{number}-DP-1/enabled", "enabled" if card.get("display") else "disabled")
    root.link(f"/sys/class/drm/card{number}", drm)
    root.link(f"/sys/class/drm/card{number}-DP-1", f"{drm}/card{number}-DP-1")
    root.raw(f"/dev/dri/card{number}", "")
    root.raw(f"/dev/dri/renderD{128 + number}", "")


def write_cards(root, scenario):
    """Every GPU, NVIDIA's and others', in the order of their addresses."""
    all_cards = [{**gpu, "ids": gpu["pci_id"].split(":")} for gpu in scenario["gpus"] if gpu.get("on_bus", True)]
    all_cards += [{**card, "ids": [card["vendor"], card["device"]]} for card in scenario.get("other_cards", [])]
    number = 0
    for card in sorted(all_cards, key=lambda one: one["pci"]):
        ids = card["ids"]
        place = write_device(root, scenario, card["pci"], card, card.get("under"))
        if card["class"] == DISPLAY:
            root.text(f"{place}/boot_vga", int(card.get("boot_vga", False)))
        if card.get("driver") and card["driver"] != "vfio-pci":
            write_screen(root, place, card, number)
            number += 1
        if "memory" in card and ids[0] == "1002":
            root.text(f"{place}/mem_info_vram_total", bytes_of(card["memory"]))


def write_bridges(root, scenario):
    for address, bridge in scenario.get("bridges", {}).items():
        card = {"driver": "pcieport", **bridge, "class": bridge.get("class", BRIDGE),
                "ids": [bridge.get("vendor", "8086"), bridge.get("device", "352a")]}
        place = write_device(root, scenario, address, card, bridge.get("parent"))
        root.text(f"{place}/secondary_bus_number", "1")
        if "acs" in bridge:
            write_configuration(root, place, bridge["acs"])


def write_thunderbolt(root, scenario):
    """A controller for each dock: domainN, the host N-0 and the dock N-1."""
    for number, dock in enumerate(scenario.get("thunderbolt", [])):
        bridge = dock.get("bridge")
        above = place_of(scenario, bridge, scenario["bridges"][bridge].get("parent")) if bridge in scenario.get(
            "bridges", {}) else f"/sys/devices/platform/nhi{number}"
        domain = f"{above}/domain{number}"
        root.text(f"{domain}/security", dock.get("security", "user"))
        root.text(f"{domain}/iommu_dma_protection", 1)
        root.link(f"/sys/bus/thunderbolt/devices/domain{number}", domain)
        host, guest = f"{domain}/{number}-0", f"{domain}/{number}-0/{number}-1"
        speed, lanes = dock.get("speed", 20.0), dock.get("lanes", 2)
        for place, vendor, name in ((host, "INTEL", "Host"), (guest, dock["vendor"], dock["name"])):
            root.text(f"{place}/vendor_name", vendor)
            root.text(f"{place}/device_name", name)
            root.text(f"{place}/generation", dock.get("generation", 3))
            root.text(f"{place}/authorized", dock.get("authorized", 1) if place == guest else 1)
            root.text(f"{place}/nvm_version", dock.get("nvm_version", "0.0") if place == guest else "62.0")
            root.link(f"/sys/bus/thunderbolt/devices/{place.rsplit('/', 1)[1]}", place)
        for way in ("rx", "tx"):
            root.text(f"{guest}/{way}_speed", f"{speed:.1f} Gb/s")
            root.text(f"{guest}/{way}_lanes", lanes)


STATES = {"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4}


def write_networks(root, scenario):
    for network in scenario.get("networks", []):
        layer = network.get("layer", "InfiniBand")
        ids = network.get("pci_id", "15b3:1021").split(":")
        kind = INFINIBAND if layer == "InfiniBand" else ETHERNET
        card = {**network, "ids": ids, "class": kind, "driver": "mlx5_core"}
        place = write_device(root, scenario, network["pci"], card, network.get("under"))
        port = f"{place}/infiniband/{network['name']}/ports/1"
        state = network.get("state", "ACTIVE")
        root.text(f"{port}/state", f"{STATES.get(state, 0)}: {state}")
        root.text(f"{port}/phys_state", "5: LinkUp" if state == "ACTIVE" else "3: Disabled")
        root.text(f"{port}/rate", network.get("rate", "400 Gb/sec (4X NDR)"))
        root.text(f"{port}/link_layer", layer)
        root.link(f"{place}/infiniband/{network['name']}/device", place)
        root.link(f"/sys/class/infiniband/{network['name']}", f"{place}/infiniband/{network['name']}")


def write_nodes(root, scenario):
    nodes = scenario.get("nodes", {})
    for number, cpus in nodes.items():
        root.text(f"/sys/devices/system/node/node{number}/cpulist", cpus)
        root.text(f"/sys/devices/system/node/node{number}/distance",
                  " ".join("10" if other == number else "21" for other in nodes))
    if nodes:
        root.text("/sys/devices/system/node/online", ",".join(nodes) if len(nodes) < 3 else f"0-{len(nodes) - 1}")


def write(scenario, folder):
    """Writes the whole root; files of an earlier run are deleted."""
    shutil.rmtree(folder, ignore_errors=True)
    root = SysRoot(folder)
    for path in ("/sys/bus/pci/devices", "/sys/class", "/proc", "/dev"):
        root.at(path).mkdir(parents=True)
    write_bridges(root, scenario)
    write_cards(root, scenario)
    write_networks(root, scenario)
    write_thunderbolt(root, scenario)
    write_nodes(root, scenario)
    procfs.write(root, scenario)
    for path, text in scenario.get("files", {}).items():
        root.raw(path, text)
    for path in scenario.get("absent", []):
        if not root.at(path).exists():
            raise Mistake(f"absent: there is no {path} to take away")
        root.at(path).unlink()
    for path, mode in scenario.get("modes", {}).items():
        if not root.at(path).exists():
            raise Mistake(f"modes: there is no {path} to give a mode to")
        root.at(path).chmod(int(mode, 8))
