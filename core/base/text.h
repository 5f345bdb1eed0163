// text.h: small files as text, and bytes as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace yoke {

// All of a file, such as one of /proc, whose size is not known before; "" where it cannot be read.
std::string file_text(const std::string &path);

// 1572864 is 1.5 of "MiB"; below 1 KiB the unit is "B". Negative sizes keep their sign.
struct ScaledBytes {
    double value;
    const char *unit;
};
ScaledBytes scaled_bytes(double bytes);

}  // namespace yoke
