"""The inventory through the C API, as plain Python values: `python inventory_c.py` prints the inventory of this process.

The structs are read out of the public headers, so a new field appears here at once. As a program, this file runs in a fresh
process without earlier use of the library: variables of the environment select scenarios.
"""
import ctypes
import json
import locale
import os
import pathlib
import re
import sys
import threading
import time

HEADERS = pathlib.Path(__file__).resolve().parents[2] / "capi" / "include" / "yoke"
TYPES = {"int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32,
         "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
         "double": ctypes.c_double,
         "char": ctypes.c_char, "const char *": ctypes.c_char_p, "yoke_status": ctypes.c_int32}
FACTS = ["driver", "driver_flavor", "nvml", "nvml_path", "nvml_problem", "cuda_driver", "visible_devices", "container",
         "docks", "virtual_machine"]


def struct(header, name):
    """The ctypes class of a struct in a public header."""
    text = re.sub(r"/\*.*?\*/", "", (HEADERS / header).read_text(), flags=re.S)
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), text, flags=re.S)[1]
    fields = []
    for line in body.split(";"):
        found = re.fullmatch(r"(const char \*|const struct \w+ \*|\w+)\s*(.*)", " ".join(line.split()))
        if not found:
            continue
        for each in found[2].split(","):
            field, _, size = each.strip().rstrip("]").partition("[")
            kind = TYPES.get(found[1], ctypes.c_void_p)  # all other types are pointers to structs
            fields.append((field, kind * int(size) if size else kind))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


CARD, PROCESS, LINK, NETWORK = (struct("inventory.h", f"yoke_{name}") for name in
                                ("card_info", "card_process", "card_link", "network_card"))


def plain(value):
    """A struct as a dict: texts decoded, what is not a number as None."""
    found = {}
    for name, kind in value._fields_:
        one = getattr(value, name)
        found[name] = one.decode() if isinstance(one, bytes) else None if one != one else one
    del found["struct_size"]
    return found


class Inventory:
    def __init__(self, library=None):
        self.library = library or ctypes.CDLL("libyoke.so.0")
        self.library.yoke_inventory_topology.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        start = time.perf_counter()
        self.check(self.library.yoke_inventory_take(ctypes.byref(self.handle)))
        self.seconds = time.perf_counter() - start

    def check(self, status):
        if status:
            error = struct("types.h", "yoke_error")
            self.library.yoke_last_error.restype = ctypes.POINTER(error)
            raise RuntimeError(self.library.yoke_last_error().contents.message.decode())

    def read(self, call, kind, *arguments):
        value = kind(struct_size=ctypes.sizeof(kind))
        self.check(getattr(self.library, call)(self.handle, *arguments, ctypes.byref(value)))
        return plain(value)

    def fact(self, key):
        text = ctypes.c_char_p()
        self.check(self.library.yoke_inventory_fact(self.handle, key.encode(), ctypes.byref(text)))
        return text.value.decode()

    def cards(self):
        cards = []
        for index in range(self.library.yoke_inventory_count(self.handle)):
            card = self.read("yoke_inventory_card", CARD, index)
            card["processes"] = [self.read("yoke_inventory_process", PROCESS, index, which)
                                 for which in range(max(card["process_count"], 0))]
            cards.append(card)
        return cards

    def networks(self, cards):
        found = []
        for index in range(self.library.yoke_inventory_network_count(self.handle)):
            paths = []
            for card in range(cards):
                network, path = NETWORK(struct_size=ctypes.sizeof(NETWORK)), ctypes.c_int32()
                self.check(self.library.yoke_inventory_network(self.handle, index, card, ctypes.byref(network),
                                                               ctypes.byref(path)))
                paths.append(path.value)
            found.append({**plain(network), "paths": paths})
        return found

    def everything(self):
        cards = self.cards()
        count = len(cards)
        return {"cards": cards, "facts": {key: self.fact(key) for key in FACTS}, "seconds": self.seconds,
                "links": [[self.read("yoke_inventory_link", LINK, a, b) for b in range(count)] for a in range(count)],
                "networks": self.networks(count) if count else [],
                "topology": self.library.yoke_inventory_topology(self.handle).decode(),
                "threads": len(os.listdir("/proc/self/task")) - threading.active_count() + 1}


def in_child():
    """Prints the inventory of a forked child; the parent has taken an inventory before."""
    child = os.fork()
    if not child:
        print(json.dumps(Inventory().everything()))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)


def samples(library):
    """Returns a sample of each CUDA device, by its own number: the card, or the error of the call.

    `told` in a sample is the UUID reported by the device.
    """
    error, count, found = struct("types.h", "yoke_error"), ctypes.c_int32(), []
    library.yoke_last_error.restype = ctypes.POINTER(error)
    library.yoke_device_count(b"cuda", ctypes.byref(count))
    for index in range(count.value):
        device, card = ctypes.c_void_p(), CARD(struct_size=ctypes.sizeof(CARD))
        library.yoke_device_get(b"cuda", index, ctypes.byref(device))
        failed = library.yoke_device_sample(device, ctypes.byref(card))
        known = CARD(struct_size=ctypes.sizeof(CARD))
        library.yoke_device_card(device, ctypes.byref(known))
        found.append(library.yoke_last_error().contents.message.decode() if failed else
                     {**plain(card), "told": plain(known)["uuid"]})
    print(json.dumps(found))


def in_threads(library):
    """Snapshots of several threads at once, and of children that are forked meanwhile."""
    threads = [threading.Thread(target=Inventory, args=(library,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(3):
        children.append(os.fork())
        if not children[-1]:
            os._exit(len(Inventory(library).cards()))
    for thread in threads:
        thread.join()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))


if __name__ == "__main__":
    if "locale" in sys.argv:
        locale.setlocale(locale.LC_NUMERIC, os.environ["LC_NUMERIC"])
    takes = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    loaded = ctypes.CDLL("libyoke.so.0")
    if "sample" in sys.argv:
        sys.exit(samples(loaded))
    for _ in range(takes):
        inventory = Inventory(loaded)
    if "fork" in sys.argv:
        in_child()
    elif "threads" in sys.argv:
        in_threads(loaded)
    else:
        maps = pathlib.Path("/proc/self/maps").read_text()
        print(json.dumps({**inventory.everything(), "maps": sorted(set(re.findall(r"/\S+\.so[.\d]*", maps)))}))
