// Cases of collectives with what each rank gives and is to have.
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

// How input and output lie: apart, at one address, or one as this rank's part of the other.
enum class Place { kApart, kSame, kOwnPart };

// Runs one case in one rank; `in` is what all ranks give.
void run(Rank &rank, const Case &is, const std::vector<std::vector<double>> &in, Place place);
void run(const Layout &layout, const std::vector<Case> &cases, Place place = Place::kApart);

std::vector<std::vector<double>> given_by_all(const Case &is, int size);

}  // namespace yoke::test
