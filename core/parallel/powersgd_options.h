// powersgd_options.h: what is said of PowerSGD: "rank=4,start=10,rate=2".
#pragma once

#include <cstdint>
#include <string>

namespace yoke {

struct PowerSgdOptions {
    int64_t rank = 1;
    int64_t start = 10;  // the first step that compresses
    double rate = 2;     // what is compressed shrinks by more than this
};

// Each may be missing. Raises YOKE_E_VALUE with what it does not know.
PowerSgdOptions read_powersgd_options(const std::string &text);
// All of them, "'powersgd:rank=4,start=10,rate=2'".
std::string text_of(const PowerSgdOptions &options);

}  // namespace yoke
