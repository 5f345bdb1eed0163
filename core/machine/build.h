// build.h: which cards this build of Yoke serves, from the mark in its CUDA module, which is not loaded for that.
//
// A tensor can be made on a card if the module is there, the driver's CUDA library is there and new enough for it, and
// it has code for the card's compute capability: what opening CUDA would find out is said here without opening it.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>
#include <vector>

namespace yoke {

// libyoke_cuda.so, as it was built.
struct Build {
    bool present = false;
    int cuda = 0;                    // 13000
    std::vector<std::string> archs;  // "90", "90a", "80-real", "90-virtual"

    int major() const { return cuda / 1000; }
};

// What stands before the mark in the module (kernels/cuda/host/build_mark.cpp), and the build by what stands behind:
// "cuda 13000 archs 80,90".
inline constexpr const char *kBuildMark = "yoke-cuda-module: ";
Build build_of_mark(const std::string &mark);

// How a build serves a compute capability (80): with machine code, or with code that the driver compiles, if it is new
// enough.
enum class Served { kNo, kBinary, kCompiled };
Served served(const Build &build, int capability);

// The same of a card. Machine code for a card that is plugged in does not run on a GPU within a processor: there it
// must be that very GPU's, or code that the driver compiles.
Served served(const Build &build, const yoke_card_info &info);

// The first release of the driver that serves libraries of a major version of CUDA, and a module that was built with
// it; "" if it is not known.
const char *first_driver_of_libraries(int cuda_major);
const char *first_driver_of_module(int cuda_major);
inline constexpr const char *kOldestDriver = "530";  // below it no build serves

// The major version of CUDA whose module a driver serves, 0 for none.
int newest_cuda_of(const std::string &driver);

// Commands, run in Yoke's source, for a build that serves a compute capability too.
std::string rebuild_for(const Build &build, int capability);

// Leading numbers of a version, "580.82.07" and "13.580.82.07" as they stand: -1, 0, 1.
int compare_versions(const std::string &a, const std::string &b);

// "13.0" -> 13000, 0 for what is no version.
int cuda_version_of(const std::string &text);

// Why this build cannot use cards of a machine, whatever the card; "" for nothing, or where it is not known: of a
// recorded machine that does not tell its build.
Rejection reject_driver(const Root &root, const Machine &machine);
// The same of one card that the driver serves.
bool serves(const Root &root, const yoke_card_info &info);
Rejection reject_card(const Root &root, const Machine &machine, const yoke_card_info &info);

}  // namespace yoke
