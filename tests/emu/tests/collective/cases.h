// Cases of collectives with inputs and right outputs.
#pragma once

#include "ranks.h"

namespace yoke::test {

struct Case {
    int32_t op;
    yoke_dtype dtype;
    int64_t count;
    int root = -1;
    int32_t reduction = -1;
    uint32_t flags = 0;
};

// Places of input and output: apart, at the same address, or the smaller as this rank's part of the larger.
enum class Place { kApart, kSame, kOwnPart };

// Runs a case in a rank; `in` has the inputs of all ranks.
void run(Rank &rank, const Case &is, const std::vector<std::vector<double>> &in, Place place);
void run(const Layout &layout, const std::vector<Case> &cases, Place place = Place::kApart);

std::vector<std::vector<double>> given_by_all(const Case &is, int size);

}  // namespace yoke::test
