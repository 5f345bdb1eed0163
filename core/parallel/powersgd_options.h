// powersgd_options.h: options of PowerSGD: "rank=4,start=10,rate=2".
#pragma once

#include <cstdint>
#include <string>

namespace yoke {

struct PowerSgdOptions {
    int64_t rank = 1;
    int64_t start = 10;  // first compressing step
    double rate = 2;     // least factor by which a compressed matrix shrinks
};

// Reads "rank=4,start=10,rate=2"; missing parts have their defaults. Raises YOKE_E_VALUE for an unknown, repeated or
// invalid part.
PowerSgdOptions read_powersgd_options(const std::string &text);
// Returns all options, as "'powersgd:rank=4,start=10,rate=2'".
std::string text_of(const PowerSgdOptions &options);

}  // namespace yoke
