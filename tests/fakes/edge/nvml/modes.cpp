// How a card is set up: partitions, compute mode, virtualization and its licence, screens.
#include <cstring>

#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

// "1g.10gb": the slices of a profile.
uint slices_of(const Json &instance)
{
    return static_cast<uint>(atoi(instance.value("profile", "0").c_str()));
}

Attributes attributes_of(const Json &instance)
{
    Attributes found{};
    found.multiprocessors = instance.value("multiprocessors", 0u);
    found.copy_engines = slices_of(instance);
    found.gpu_slices = found.compute_slices = slices_of(instance);
    found.memory_mib = bytes_of(instance.value("memory", Json(0))) >> 20;
    return found;
}

int attributes(const char *call, Handle *device, Attributes *out)
{
    return on_any(call, device, {out}, [&](const Scenario &, const Gpu &gpu, const Json *instance) {
        if (instance) {
            *out = attributes_of(*instance);
            return kSuccess;
        }
        *out = {};
        out->memory_mib = gpu.bytes("memory") >> 20;
        return tell(gpu, "multiprocessors", &out->multiprocessors);
    });
}

int instance_id(const char *call, Handle *device, const char *key, uint *out)
{
    return on_any(call, device, {out}, [&](const Scenario &, const Gpu &, const Json *instance) {
        if (!instance) return kNotSupported;
        *out = instance->value(key, 0u);
        return kSuccess;
    });
}

// Returns a licence that ends in years. Without a licence, the date is not valid.
LicensableFeature licence_of(const Gpu &gpu)
{
    LicensableFeature feature{};
    feature.code = 4;  // computing
    feature.licensed = feature.enabled = gpu.flag("vgpu_licensed");
    strcpy(feature.product, "NVIDIA Virtual Compute Server");
    strcpy(feature.info, feature.product);
    feature.expiry = {
        2099, 12, 31, 23, 59, 59, static_cast<unsigned char>(feature.licensed ? 2 : 1)};
    return feature;
}

int licences(const char *call, Handle *device, LicensableFeatures *out)
{
    return on_gpu(call, device, {out}, [&](const Scenario &, const Gpu &gpu) {
        memset(out, 0, sizeof *out);
        out->supported = gpu.flag("vgpu");
        out->count = gpu.flag("vgpu");
        if (out->count) out->features[0] = licence_of(gpu);
        return kSuccess;
    });
}

}  // namespace

EXPORT int nvmlDeviceGetMigMode(Handle *device, uint *current, uint *pending)
{
    return on_gpu(__func__, device, {current, pending}, [&](const Scenario &, const Gpu &gpu) {
        const Return code = tell(gpu, "mig", current);
        if (!code) *pending = *current;
        return code;
    });
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(Handle *device, uint *count)
{
    return on_gpu(__func__, device, {count}, [&](const Scenario &, const Gpu &gpu) {
        *count = gpu.keys.contains("mig") ? 7 : 0;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(Handle *device, uint index, Handle **instance)
{
    return on_gpu(__func__, device, {instance}, [&](const Scenario &, const Gpu &gpu) {
        if (!gpu.keys.contains("mig")) return kNotSupported;
        if (index >= gpu.instances().size() || !gpu.flag("mig"))
            return index < 7 ? kNotFound : kInvalidArgument;
        *instance = handle_of(gpu.number, static_cast<int>(index));
        return kSuccess;
    });
}

EXPORT int nvmlDeviceIsMigDeviceHandle(Handle *device, uint *is_instance)
{
    return on_any(__func__, device, {is_instance},
                  [&](const Scenario &, const Gpu &, const Json *instance) {
                      *is_instance = instance != nullptr;
                      return kSuccess;
                  });
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Handle *instance, Handle **device)
{
    return on_any(__func__, instance, {device},
                  [&](const Scenario &, const Gpu &gpu, const Json *part) {
                      if (!part) return kInvalidArgument;
                      *device = handle_of(gpu.number);
                      return kSuccess;
                  });
}

EXPORT int nvmlDeviceGetGpuInstanceId(Handle *device, uint *id)
{
    return instance_id(__func__, device, "gpu_instance", id);
}

EXPORT int nvmlDeviceGetComputeInstanceId(Handle *device, uint *id)
{
    return instance_id(__func__, device, "compute_instance", id);
}

EXPORT int nvmlDeviceGetAttributes_v2(Handle *device, Attributes *out)
{
    return attributes(__func__, device, out);
}

EXPORT int nvmlDeviceGetAttributes(Handle *device, Attributes *out)
{
    return attributes(__func__, device, out);
}

// 0: none, 1: passed through, 2: of a virtual machine, 3: a host's.
EXPORT int nvmlDeviceGetVirtualizationMode(Handle *device, int *mode)
{
    return on_gpu(__func__, device, {mode}, [&](const Scenario &, const Gpu &gpu) {
        const std::string kind = gpu.text("virtualization", "none");
        *mode = kind == "passthrough" ? 1 : kind == "vgpu" ? 2 : kind == "host-vgpu" ? 3 : 0;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetGridLicensableFeatures_v4(Handle *device, LicensableFeatures *out)
{
    return licences(__func__, device, out);
}

EXPORT int nvmlDeviceGetDriverModel_v2(Handle *device, int *current, int *pending)
{
    return on_gpu(__func__, device, {current, pending},
                  [](const Scenario &, const Gpu &) { return kNotSupported; });  // Windows alone
}

EXPORT int nvmlDeviceGetDisplayMode(Handle *device, int *on)
{
    return on_gpu(__func__, device, {on}, [&](const Scenario &, const Gpu &gpu) {
        *on = gpu.flag("display");
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetMultiGpuBoard(Handle *device, uint *is_multi)
{
    return on_gpu(__func__, device, {is_multi}, [&](const Scenario &all, const Gpu &gpu) {
        *is_multi = 0;
        for (const Gpu &other : all.gpus)
            if (other.number != gpu.number && gpu.keys.contains("board") &&
                other.keys.value("board", -1) == gpu.keys.value("board", -2))
                *is_multi = 1;
        return kSuccess;
    });
}

YOKE_FAKE_NUMBER(nvmlDeviceGetComputeMode, int, "compute_mode", 1)
YOKE_FAKE_NUMBER(nvmlDeviceGetPersistenceMode, int, "persistence", 1)
YOKE_FAKE_NUMBER(nvmlDeviceGetDisplayActive, int, "display", 1)
