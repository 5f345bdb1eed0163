// Cards in cuDNN's JSON description, so that graphs can be tried for missing cards.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace yoke::cuda {

struct Card {
    const char *name;
    int arch;                                  // 90 is 9.0
    int multiprocessors, clock, memory_clock;  // kHz
    int64_t memory, l2;
    int shared, blocks, threads;  // most bytes of a block; of a multiprocessor
};

// By NVIDIA's data sheets, and the CUDA C++ Programming Guide's table of compute capabilities.
constexpr Card kCards[] = {
    {"Tesla T4", 75, 40, 1590000, 5001000, 15'642'329'088, 4 << 20, 65536, 16, 1024},
    {"NVIDIA A100-SXM4-80GB", 80, 108, 1410000, 1593000, 85'095'874'560, 40 << 20, 166912, 32,
     2048},
    {"NVIDIA L4", 89, 58, 2040000, 6251000, 23'570'153'472, 48 << 20, 101376, 24, 1536},
    {"NVIDIA H100 80GB HBM3", 90, 132, 1980000, 2619000, 85'008'384'000, 50 << 20, 232448, 32,
     2048},
    {"NVIDIA H200", 90, 132, 1980000, 3201000, 150'108'241'920, 60 << 20, 232448, 32, 2048},
    {"NVIDIA B200", 100, 148, 1965000, 3996000, 191'504'580'608, 126 << 20, 232448, 32, 2048},
    {"NVIDIA GeForce RTX 5090", 120, 170, 2407000, 14001000, 34'190'917'632, 96 << 20, 101376, 24,
     1536},
};

// The driver is for CUDA 13.0, newer than any card needs.
inline std::string described(const Card &card)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
        R"("multiProcessorCount":%d,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":%d,)"
        R"("reservedSharedMemoryPerBlock":%d,"maxRegistersPerSM":65536,"maxCtasPerSM":%d,"maxThreadsPerBlock":1024,)"
        R"("maxThreadsPerSM":%d,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":%lld,)"
        R"("smClockRateKHz":%d,"memClockRateKHz":%d,"l2CacheSize":%lld,"cudaDeviceId":0,"deviceVer":%d,)"
        R"("driverVer":13000,"deviceName":"%s"})",
        card.multiprocessors, card.shared, card.arch < 80 ? 0 : 1024, card.blocks, card.threads,
        static_cast<long long>(card.memory), card.clock, card.memory_clock,
        static_cast<long long>(card.l2), card.arch * 10, card.name);
    return text;
}

}  // namespace yoke::cuda
