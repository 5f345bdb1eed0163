// abi.h: the part of NVML's binary interface that the fake library speaks: numbers and the layouts of structs.
//
// Written down from the documentation of NVML 13. Layouts never change; a new one gets a new version.
#pragma once

#include <cstdint>

namespace yoke::fake_nvml {

using uint = unsigned;
using ulonglong = unsigned long long;

enum Return : int {
    kSuccess = 0,
    kUninitialized = 1,
    kInvalidArgument = 2,
    kNotSupported = 3,
    kNoPermission = 4,
    kNotFound = 6,
    kInsufficientSize = 7,
    kDriverNotLoaded = 9,
    kTimeout = 10,
    kGpuIsLost = 15,
    kVersionMismatch = 18,  // library and kernel module
    kArgumentVersionMismatch = 25,
    kUnknown = 999
};

// Returns the version field of a struct: the size, and above it the number.
template <class Struct>
constexpr uint version_of(uint number)
{
    return static_cast<uint>(sizeof(Struct)) | number << 24;
}

struct PciInfo {  // v3; v1 ends before `subsystem`, v2 after it
    char legacy_id[16];
    uint domain, bus, device, pci_id, subsystem;
    char id[32];
};
struct PciInfoExt {
    uint version, domain, bus, device, pci_id, subsystem, base_class, sub_class;
    char id[32];
};
struct Memory {
    ulonglong total, free, used;
};
struct MemoryV2 {
    uint version;
    ulonglong total, reserved, free, used;
};
struct Bar1Memory {
    ulonglong total, free, used;
};
struct Utilization {
    uint gpu, memory;
};
struct TemperatureV {
    uint version;
    int sensor, celsius;
};
struct MarginTemperature {
    uint version;
    int celsius;
};
struct FanSpeedInfo {
    uint version, fan, rpm;
};
struct EccCounts {
    ulonglong l1, l2, device_memory, registers;
};
struct RemapperHistogram {
    uint max, high, partial, low, none;
};
struct RemappedRowsV2 {
    uint corrected, corrected_inactive, uncorrected, uncorrected_inactive, pending, failed;
};
struct ProcessV1 {
    uint pid;
    ulonglong memory;
};
struct ProcessV2 {  // calls _v2 and _v3
    uint pid;
    ulonglong memory;
    uint gpu_instance, compute_instance;
};
struct ProcessDetail {
    uint pid;
    ulonglong memory;
    uint gpu_instance, compute_instance;
    ulonglong protected_memory;
};
struct ProcessDetailList {
    uint version, mode, count;
    ProcessDetail *processes;
};
struct ProcessSample {
    uint pid;
    ulonglong time;
    uint sm, memory, encoder, decoder;
};
struct ProcessUtilization {
    ulonglong time;
    uint pid, sm, memory, encoder, decoder, jpeg, ofa;
};
struct ProcessesUtilization {
    uint version, count;
    ulonglong last_seen;
    ProcessUtilization *processes;
};
struct Attributes {
    uint multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    ulonglong memory_mib;
};
struct LicenseExpiry {
    uint year;
    unsigned short month, day, hour, minute, second;
    unsigned char status;
};
struct LicensableFeature {
    int code;
    uint licensed;
    char info[128], product[128];
    uint enabled;
    LicenseExpiry expiry;
};
struct LicensableFeatures {
    int supported;
    uint count;
    LicensableFeature features[3];
};
struct EventDataV1 {
    struct Handle *device;
    ulonglong type, data;
};
struct EventData {
    struct Handle *device;
    ulonglong type, data;
    uint gpu_instance, compute_instance;
};
union Value {
    double real;
    uint number;
    ulonglong large;
    long long signed_large;
};
struct FieldValue {
    uint field, scope;
    long long time, latency;
    int type, result;
    Value value;
};
struct UuidV {
    uint version, type;
    union {
        char text[41];
        unsigned char bytes[16];
    };
};
struct DriverBranch {
    uint version;
    char branch[80];
};
struct Violation {
    ulonglong reference_time, time;
};
struct ConfidentialMemory {
    ulonglong protected_kib, unprotected_kib;
};

constexpr uint kNoInstance = 0xffffffff;
constexpr ulonglong kMemoryNotTold = ~0ull;

}  // namespace yoke::fake_nvml
