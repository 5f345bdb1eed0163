// Reports of a kernel's note: a single thread gets the whole note, and its place then serves the next note. The test
// has fault.cpp alone, and holds a thread while the thread puts the note into words.
#include "kernels/cuda/host/fault.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <thread>

static std::atomic<int> g_writing{0};  // threads at the op's name
static std::atomic<bool> g_held{false};

const char *yoke::kernels::op_name(int32_t)
{
    ++g_writing;
    while (g_held) std::this_thread::yield();
    return "embedding";
}

namespace yoke::cuda {

static thread_local std::string t_told;

Scope::Scope(Device &device, CUcontext, const char *) : device_(&device) {}
Scope::~Scope() = default;

yoke_status Scope::check(cudaError_t error, const char *, ...) const
{
    return error ? YOKE_E_INTERNAL : YOKE_OK;
}

yoke_status Scope::refuse(yoke_status status, const char *format, ...) const
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    t_told = text;
    return status;
}

void log_failure(const Device &, cudaError_t, const char *) {}

extern "C" cudaError_t cudaHostAlloc(void **, size_t, unsigned)
{
    return cudaErrorMemoryAllocation;
}
extern "C" cudaError_t cudaFreeHost(void *)
{
    return cudaSuccess;
}

// ---- the tests ------------------------------------------------------------------------------------------------------

static Fault note_of(int64_t value)
{
    Fault note{};
    note.claimed = note.ready = 1;
    note.status = YOKE_E_INDEX;
    note.format = "%s: index[%lld] is %lld";
    note.position = 1;
    note.value = value;
    note.ndim = -1;
    return note;
}

// Holds the first of two threads in the middle, and calls `meanwhile` then. Returns both threads' reports, joined.
template <class Meanwhile>
static std::string told_to_two_threads(Device &device, const Meanwhile &meanwhile)
{
    const Scope scope(device, nullptr, "a test");
    std::string told[2];
    std::atomic<bool> second_is_back{false};
    const auto take = [&](std::string &text) {
        if (take_fault(scope) == YOKE_E_INDEX) text = t_told;
    };
    g_writing = 0;
    g_held = true;
    std::thread first([&] { take(told[0]); });
    while (g_writing < 1) std::this_thread::yield();
    meanwhile();
    std::thread second([&] {
        take(told[1]);
        second_is_back = true;
    });
    while (!second_is_back && g_writing < 2) std::this_thread::yield();
    g_held = false;
    first.join();
    second.join();
    return told[0] + " | " + told[1];
}

constexpr const char *kEnd = " (found on the device, by a call before this one)";

TEST(Fault, IsToldToOneOfTheThreadsThatFindIt)
{
    Fault note = note_of(99);
    Device device{};
    device.fault = &note;
    EXPECT_EQ(told_to_two_threads(device, [] {}),
              std::string("embedding: index[1] is 99") + kEnd + " | ");
    EXPECT_EQ(g_writing, 1) << "the other thread read what was being forgotten";
    EXPECT_EQ(note.claimed, 0);
    EXPECT_EQ(note.ready, 0);
}

TEST(Fault, LeavesItsPlaceToTheNextBeforeItIsPutIntoWords)
{
    Fault note = note_of(99);
    Device device{};
    device.fault = &note;
    const auto next_kernel = [&] {
        EXPECT_EQ(note.claimed, 0);
        note = note_of(77);
    };
    EXPECT_EQ(
        told_to_two_threads(device, next_kernel),
        std::string("embedding: index[1] is 99") + kEnd + " | embedding: index[1] is 77" + kEnd);
}

}  // namespace yoke::cuda
