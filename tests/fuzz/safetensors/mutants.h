// mutants.h: whole files of states, and defective files, made from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace yoke::fuzz {

// Returns files of other writers and of Yoke.
const std::vector<std::string> &whole_files();

// Random numbers that are the same everywhere.
class Draw {
public:
    explicit Draw(uint64_t seed) : state_(seed) {}
    uint64_t below(uint64_t end)  // 0 for an end of 0
    {
        state_ += 0x9e3779b97f4a7c15;
        uint64_t x = state_;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
        x = (x ^ x >> 27) * 0x94d049bb133111eb;
        return end ? (x ^ x >> 31) % end : 0;
    }
    bool one_in(uint64_t n) { return below(n) == 0; }

private:
    uint64_t state_;
};

// Returns a file with one to four changes: of bytes, of entries in the header or tree, of the data, or of the length.
std::string mutant_of(const std::string &file, Draw &draw);

// The first 8 bytes say how long the header is that seems to be meant.
void mend_length(std::string &file);

}  // namespace yoke::fuzz
