// libfuzzer.cpp: target for libFuzzer. libFuzzer's changes keep the header's length right, and alternate with Yoke's
// changes.
#include "tests/fuzz/safetensors/mutants.h"
#include "tests/fuzz/safetensors/target.h"

#include <cstring>

using namespace yoke::fuzz;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)try_file({reinterpret_cast<const char *>(data), size});
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    Draw draw(seed);
    std::string made;
    if (draw.one_in(2)) {
        made = mutant_of(std::string(reinterpret_cast<char *>(data), size), draw);
    } else {
        size = LLVMFuzzerMutate(data, size, most);
        made.assign(reinterpret_cast<char *>(data), size);
        if (!draw.one_in(8)) mend_length(made);
    }
    if (made.size() > most) made.resize(most);
    memcpy(data, made.data(), made.size());
    return made.size();
}
