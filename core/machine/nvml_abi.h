// nvml_abi.h: the part of NVML's binary interface that is used, in our own words.
//
// The library is only ever looked up at run time, so no header of it is needed to build. Layouts are held to the sizes
// of the published interface (version 13) by static_assert; numbers carry NVML's values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace yoke::nvml {

using Handle = struct HandleTag *;  // handle of a GPU or a MIG instance

// Return codes.
constexpr int kSuccess = 0, kUninitialized = 1, kNotSupported = 3, kNoPermission = 4, kNotFound = 6,
              kInsufficientSize = 7, kDriverNotLoaded = 9, kNoFunction = 13, kLost = 15,
              kResetRequired = 16, kOperatingSystem = 17, kVersionMismatch = 18,
              kStructMismatch = 25, kDeprecated = 26, kGpuNotFound = 28;

constexpr unsigned kInitNoGpus = 1;  // a machine without GPUs is no failure

constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kSensorGpu = 0;
constexpr int kThresholdSlowdown = 1;
constexpr int kEccCorrected = 0, kEccUncorrected = 1;
constexpr int kEccVolatile = 0;
constexpr int kVirtualizationGuest = 2;  // a vGPU within a virtual machine
constexpr int kPeerRead = 0, kPeerWrite = 1;
constexpr int kPeerOk = 0;
constexpr int kLinkToGpu = 0, kLinkToSwitch = 2;
constexpr unsigned kMaxLinks = 36;
constexpr uint64_t kNoValue = ~uint64_t{0};  // a measure that the driver does not have
constexpr unsigned kNameSize = 96, kUuidSize = 96, kVersionSize = 80;

struct PciInfo {
    char address_short[16];
    unsigned domain, bus, device;
    unsigned device_id, subsystem_id;
    char address[32];  // "00000000:65:00.0"
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
    uint64_t total, free, used;  // used: with the driver's own share
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
    unsigned version;
    uint64_t total, reserved, free, used;  // used: without `reserved`
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);

// Returns the first field of structs with a version: their size, and the version in the top byte.
constexpr unsigned version_of(size_t size, unsigned version)
{
    return static_cast<unsigned>(size) | version << 24;
}

struct Utilization {
    unsigned gpu, memory;  // percent
};
static_assert(sizeof(Utilization) == 8);

struct ProcessV1 {
    unsigned pid;
    uint64_t memory;
};
static_assert(sizeof(ProcessV1) == 16);

struct Process {
    unsigned pid;
    uint64_t memory;
    unsigned gpu_instance, compute_instance;  // ~0 without MIG
};
static_assert(sizeof(Process) == 24);

struct Attributes {
    unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, flows;
    unsigned gpu_slices, compute_slices;
    uint64_t memory_mib;
};
static_assert(sizeof(Attributes) == 40);

struct Temperature {
    unsigned version;
    int sensor, degrees;
};
static_assert(sizeof(Temperature) == 12);

struct LicenceExpiry {
    unsigned year;
    unsigned short month, day, hour, minute, second;
    unsigned char status;
};
static_assert(sizeof(LicenceExpiry) == 16);

struct LicensableFeature {
    int code;
    unsigned licensed;
    char information[128], product[128];
    unsigned enabled;
    LicenceExpiry expiry;
};
static_assert(sizeof(LicensableFeature) == 284);

struct LicensableFeatures {
    int supported;
    unsigned count;
    LicensableFeature features[3];
};
static_assert(sizeof(LicensableFeatures) == 860);

}  // namespace yoke::nvml
