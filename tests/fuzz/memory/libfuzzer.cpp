// libfuzzer.cpp: the programs, from bytes made by libFuzzer.
#include "tests/fuzz/memory/program.h"

#include <gtest/gtest.h>

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    testing::InitGoogleTest(argc, *argv);
    GTEST_FLAG_SET(break_on_failure, true);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    yoke::fuzz::Tally tally;
    yoke::fuzz::run_program(data, size, tally);
    return 0;
}
