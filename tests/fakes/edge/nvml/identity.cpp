// Cards: the number, the search, and the properties.
#include <strings.h>

#include <cstring>

#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

struct Address {
    uint domain = 0, bus = 0, device = 0;
};

bool read_address(const char *text, Address &address)
{
    uint function = 0;
    if (sscanf(text, "%x:%x:%x.%x", &address.domain, &address.bus, &address.device, &function) >= 3)
        return true;
    address.domain = 0;
    return sscanf(text, "%x:%x.%x", &address.bus, &address.device, &function) >= 2;
}

// A card that is lost is no longer handed out.
Return hand_out(const char *call, const Scenario &all, int gpu, Handle **device)
{
    *device = nullptr;
    if (const Return code = enter_card(call, all, gpu)) return code;
    *device = handle_of(gpu);
    return kSuccess;
}

int by_index(const char *call, uint index, Handle **device)
{
    return on_system(call, {device}, [&](const Scenario &all) {
        if (index >= all.order.size()) return kInvalidArgument;
        return hand_out(call, all, all.order[index], device);
    });
}

int by_address(const char *call, const char *text, Handle **device)
{
    return on_system(call, {text, device}, [&](const Scenario &all) {
        Address wanted, found;
        if (!read_address(text, wanted)) return kInvalidArgument;
        for (const int one : all.order) {
            read_address(all.gpus[static_cast<size_t>(one)].text("pci").c_str(), found);
            if (found.domain == wanted.domain && found.bus == wanted.bus &&
                found.device == wanted.device)
                return hand_out(call, all, one, device);
        }
        return kNotFound;
    });
}

Return by_uuid(const char *call, const Scenario &all, const char *uuid, Handle **device)
{
    for (const int one : all.order) {
        const Gpu &gpu = all.gpus[static_cast<size_t>(one)];
        if (!strcasecmp(gpu.text("uuid").c_str(), uuid)) return hand_out(call, all, one, device);
        for (size_t i = 0; i < gpu.instances().size(); ++i)
            if (gpu.instances()[i].value("uuid", "") == uuid) {
                *device = handle_of(one, static_cast<int>(i));
                return kSuccess;
            }
    }
    return kNotFound;
}

uint id_of(const std::string &text)  // "10de:2330" as NVML packs it, the device above the vendor
{
    uint vendor = 0, device = 0;
    sscanf(text.c_str(), "%x:%x", &vendor, &device);
    return device << 16 | vendor;
}

PciInfo pci_of(const Gpu &gpu)
{
    PciInfo pci{};
    Address address;
    read_address(gpu.text("pci").c_str(), address);
    pci.domain = address.domain;
    pci.bus = address.bus;
    pci.device = address.device;
    pci.pci_id = id_of(gpu.text("pci_id"));
    pci.subsystem = id_of(gpu.text("subsystem_id", "0:0"));
    snprintf(pci.legacy_id, sizeof pci.legacy_id, "%04X:%02X:%02X.0", pci.domain & 0xffff,
             pci.bus & 0xff, pci.device & 0xff);
    snprintf(pci.id, sizeof pci.id, "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
    return pci;
}

// Older callers have memory for a part of it.
int pci_info(const char *call, Handle *device, void *out, size_t room)
{
    return on_gpu(call, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        const PciInfo pci = pci_of(gpu);
        memcpy(out, &pci, room);
        return kSuccess;
    });
}

int count(const char *call, uint *out)
{
    return on_system(call, {out}, [&](const Scenario &all) {
        *out = static_cast<uint>(all.order.size());
        return kSuccess;
    });
}

}  // namespace

EXPORT int nvmlDeviceGetCount_v2(uint *out)
{
    return count(__func__, out);
}

EXPORT int nvmlDeviceGetCount(uint *out)
{
    return count(__func__, out);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(uint index, Handle **device)
{
    return by_index(__func__, index, device);
}

EXPORT int nvmlDeviceGetHandleByIndex(uint index, Handle **device)
{
    return by_index(__func__, index, device);
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *address, Handle **device)
{
    return by_address(__func__, address, device);
}

EXPORT int nvmlDeviceGetHandleByPciBusId(const char *address, Handle **device)
{
    return by_address(__func__, address, device);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, Handle **device)
{
    return on_system(__func__, {uuid, device}, [&](const Scenario &all) {
        return by_uuid("nvmlDeviceGetHandleByUUID", all, uuid, device);
    });
}

EXPORT int nvmlDeviceGetHandleByUUIDV(const UuidV *uuid, Handle **device)
{
    return on_system(__func__, {uuid, device}, [&](const Scenario &all) {
        const uint wanted = version_of<UuidV>(1);
        if (const Return code = check_version(all, "nvmlUUID_v1_t", uuid->version, wanted))
            return code;
        if (uuid->type != 1) return kNotSupported;  // 1: as text
        return by_uuid("nvmlDeviceGetHandleByUUIDV", all, uuid->text, device);
    });
}

EXPORT int nvmlDeviceGetHandleBySerial(const char *serial, Handle **device)
{
    return on_system(__func__, {serial, device}, [&](const Scenario &all) {
        for (const int one : all.order)
            if (all.gpus[static_cast<size_t>(one)].text("serial") == serial)
                return hand_out("nvmlDeviceGetHandleBySerial", all, one, device);
        return kNotFound;
    });
}

EXPORT int nvmlDeviceGetIndex(Handle *device, uint *index)
{
    return on_any(__func__, device, {index},
                  [&](const Scenario &all, const Gpu &gpu, const Json *instance) {
                      for (size_t i = 0; i < all.order.size(); ++i)
                          if (all.order[i] == gpu.number) *index = static_cast<uint>(i);
                      if (instance) *index = static_cast<uint>(device->instance);
                      return kSuccess;
                  });
}

EXPORT int nvmlDeviceGetName(Handle *device, char *name, uint length)
{
    return on_any(__func__, device, {name},
                  [&](const Scenario &, const Gpu &gpu, const Json *instance) {
                      std::string text = gpu.text("name");
                      if (instance) text += " MIG " + instance->value("profile", "");
                      return tell_text(text, name, length);
                  });
}

EXPORT int nvmlDeviceGetUUID(Handle *device, char *uuid, uint length)
{
    return on_any(__func__, device, {uuid},
                  [&](const Scenario &, const Gpu &gpu, const Json *instance) {
                      const std::string own = gpu.text("uuid");
                      return tell_text(instance ? instance->value("uuid", "") : own, uuid, length);
                  });
}

EXPORT int nvmlDeviceGetPciInfo_v3(Handle *device, PciInfo *out)
{
    return pci_info(__func__, device, out, sizeof *out);
}

EXPORT int nvmlDeviceGetPciInfo_v2(Handle *device, PciInfo *out)
{
    return pci_info(__func__, device, out, offsetof(PciInfo, id));
}

EXPORT int nvmlDeviceGetPciInfo(Handle *device, PciInfo *out)
{
    return pci_info(__func__, device, out, offsetof(PciInfo, subsystem));
}

EXPORT int nvmlDeviceGetPciInfoExt(Handle *device, PciInfoExt *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &all, const Gpu &gpu) {
        const uint wanted = version_of<PciInfoExt>(1);
        if (const Return code = check_version(all, "nvmlPciInfoExt_v1_t", out->version, wanted))
            return code;
        const PciInfo pci = pci_of(gpu);
        const uint kind = static_cast<uint>(std::stoul(gpu.text("class", "030000"), nullptr, 16));
        *out = {wanted,        pci.domain, pci.bus,         pci.device, pci.pci_id,
                pci.subsystem, kind >> 16, kind >> 8 & 255, {}};
        memcpy(out->id, pci.id, sizeof out->id);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetCudaComputeCapability(Handle *device, int *major, int *minor)
{
    return on_any(__func__, device, {major, minor},
                  [&](const Scenario &, const Gpu &gpu, const Json *) {
                      const std::string cc = gpu.text("cc");
                      return sscanf(cc.c_str(), "%d.%d", major, minor) == 2 ? kSuccess : kUnknown;
                  });
}

// NVML's numbers of architectures, by compute capability.
EXPORT int nvmlDeviceGetArchitecture(Handle *device, uint *out)
{
    return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        static const std::pair<double, uint> kFrom[] = {{10.0, 10}, {9.0, 9}, {8.9, 8}, {8.0, 7},
                                                        {7.5, 6},   {7.0, 5}, {6.0, 4}, {5.0, 3}};
        const double cc = std::stod(gpu.text("cc"));
        *out = 2;
        for (const auto &[from, number] : kFrom)
            if (cc >= from) {
                *out = number;
                break;
            }
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetBrand(Handle *device, int *brand)
{
    return on_gpu(__func__, device, {brand}, [&](const Scenario &, const Gpu &gpu) {
        const std::string name = gpu.text("name");
        *brand = name.find("GeForce RTX") != name.npos ? 15
                 : name.find("GeForce") != name.npos   ? 5
                 : name.find("Tesla") != name.npos     ? 2
                                                       : 14;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetBusType(Handle *device, int *type)
{
    return on_gpu(__func__, device, {type}, [&](const Scenario &, const Gpu &) {
        *type = 2;  // PCI Express
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetBoardId(Handle *device, uint *board)
{
    return on_gpu(__func__, device, {board}, [&](const Scenario &, const Gpu &gpu) {
        const PciInfo pci = pci_of(gpu);
        *board = gpu.keys.value("board", pci.bus << 8 | pci.device);
        return kSuccess;
    });
}

YOKE_FAKE_NUMBER(nvmlDeviceGetMinorNumber, uint, "minor", 1)
YOKE_FAKE_NUMBER(nvmlDeviceGetNumGpuCores, uint, "cores", 1)
YOKE_FAKE_NUMBER(nvmlDeviceGetMemoryBusWidth, uint, "bus_width", 1)
YOKE_FAKE_TEXT(nvmlDeviceGetSerial, "serial")
YOKE_FAKE_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
YOKE_FAKE_TEXT(nvmlDeviceGetBoardPartNumber, "part")
