// model.h: what a device's figures must be, counted block by block.
#pragma once

#include "core/memory/arena.h"
#include "core/memory/statistics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace yoke::test {

using Figures = std::map<std::string, MemoryFigure>;

inline Figures figures_of(Device &device)
{
    Figures figures;
    for (const MemoryFigure &each : memory_figures(device)) figures[each.key] = each;
    return figures;
}

class Model {
public:
    void alloc(const Block &block)
    {
        for (const int pool : {pool_of(block), kAllPools}) {
            now[pool] += amounts_of(block);
            came[pool] += amounts_of(block);
            peak[pool].raise_to(now[pool]);
        }
    }
    void free(const Block &block)
    {
        for (const int pool : {pool_of(block), kAllPools}) {
            now[pool] += -amounts_of(block);
            gone[pool] += amounts_of(block);
        }
    }
    void reset_peaks()
    {
        for (int pool = 0; pool < 3; ++pool) peak[pool] = now[pool];
    }
    void reset_totals()
    {
        for (int pool = 0; pool < 3; ++pool) came[pool] = gone[pool] = {};
    }

    // Returns the figures with wrong values. Peaks of several threads are not exact.
    std::string differences(const Figures &figures, bool with_peaks) const
    {
        std::string found;
        const auto compare = [&](const std::string &key, int64_t wanted) {
            const int64_t told = figures.at(key).number;
            if (told != wanted)
                found +=
                    key + " is " + std::to_string(told) + ", not " + std::to_string(wanted) + "; ";
        };
        const char *const pools[] = {"small_pool", "large_pool", "all"};
        const std::pair<const char *, const Amounts *> fields[] = {
            {"current", now}, {"allocated", came}, {"freed", gone}, {"peak", peak}};
        for (int pool = 0; pool < 3; ++pool)
            for (const auto &[field, amounts] : fields) {
                if (amounts == peak && !with_peaks) continue;
                const std::string key = std::string(".") + pools[pool] + "." + field;
                compare("allocation" + key, amounts[pool].count);
                compare("allocated_bytes" + key, amounts[pool].bytes);
                compare("requested_bytes" + key, amounts[pool].requested);
            }
        return found;
    }
    void check(Device &device) const { EXPECT_EQ(differences(figures_of(device), true), ""); }

    Amounts now[3], peak[3], came[3], gone[3];
};

}  // namespace yoke::test
