// build.h: the cards served by this build of Yoke, read from the mark in its CUDA module without loading the module.
//
// A tensor can be made on a card under three conditions: the module is there, the driver's CUDA library is there and
// new enough for the module, and the module has code for the card's compute capability. This file finds out without
// opening CUDA.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>
#include <vector>

namespace yoke {

// Build of libyoke_cuda.so.
struct Build {
    bool present = false;
    int cuda = 0;                    // 13000
    std::vector<std::string> archs;  // "90", "90a", "80-real", "90-virtual"

    int major() const { return cuda / 1000; }
};

// Text before the mark in the module (kernels/cuda/host/build_mark.cpp).
inline constexpr const char *kBuildMark = "yoke-cuda-module: ";
// Returns the build from the text after kBuildMark, "cuda 13000 archs 80,90". For any other text, returns a build
// that is not present.
Build build_of_mark(const std::string &mark);

// Way in which a build serves a compute capability (80): with machine code, or with code compiled by a driver new
// enough for this.
enum class Served { kNo, kBinary, kCompiled };
// Returns how a build serves a capability: with machine code if the build has some, else with compiled code.
Served served(const Build &build, int capability);

// Returns how a build serves a card. Machine code for a plug-in card does not run on a GPU within a processor. Such a
// GPU needs its own machine code, or code compiled by the driver.
Served served(const Build &build, const yoke_card_info &info);

// Return the first driver release for libraries of a major version of CUDA, and for a module built with this version;
// "" if unknown.
const char *first_driver_of_libraries(int cuda_major);
const char *first_driver_of_module(int cuda_major);
inline constexpr const char *kOldestDriver = "530";  // below, no build serves

// Returns the newest major version of CUDA whose module the driver serves, 0 for none.
int newest_cuda_of(const std::string &driver);

// Returns commands, for Yoke's source folder, to make a build that serves a compute capability too.
std::string rebuild_for(const Build &build, int capability);

// Compares two versions number by number, and returns -1, 0 or 1. Leading numbers are not left out: "13.580.82.07" is
// below "580.82.07".
int compare_versions(const std::string &a, const std::string &b);

// Returns 13000 for "13.0"; 0 for a text without a number.
int cuda_version_of(const std::string &text);

// Returns why this build cannot use any card of a machine, or an empty rejection. The rejection is also empty if the
// reason is unknown: a recorded machine may not tell its build.
Rejection reject_driver(const Root &root, const Machine &machine);
// Return whether the build has code for a single card, and why the build cannot use the card (else an empty
// rejection). The caller asks only if the build serves the driver.
bool serves(const Root &root, const yoke_card_info &info);
Rejection reject_card(const Root &root, const Machine &machine, const yoke_card_info &info);

}  // namespace yoke
