// Work on the fake device is late and in any order that streams and events allow, as on a GPU: what a test or the core
// reads too soon is old, and what is given back too soon is refused.
#include <cstring>
#include <set>
#include <vector>

#include "module.h"
#include "tests/core/fresh_process.h"

namespace yoke::test {

namespace {

// In one process for each seed: the order is settled when the module is loaded.
template <class Body>
void with_seeds(const Body &body)
{
    for (int seed = 0; seed < 6; ++seed)
        EXPECT_TRUE(passes_in_child([&] {
            setenv("FAKE_CUDA_SEED", std::to_string(seed).c_str(), 1);
            body(seed);
        })) << "seed "
            << seed;
}

constexpr uint64_t kLateBytes = 64;

struct Device {
    Module module;
    void *device = module.open();

    char *block()
    {
        void *made = nullptr;
        EXPECT_EQ(module->alloc(device, kLateBytes, &made), YOKE_OK);
        return static_cast<char *>(made);
    }
    char *pinned()
    {
        void *made = nullptr;
        EXPECT_EQ(module->host_alloc(device, kLateBytes, &made), YOKE_OK);
        return static_cast<char *>(made);
    }
    void *stream()
    {
        void *made = nullptr;
        EXPECT_EQ(module->stream_create(device, 0, &made), YOKE_OK);
        return made;
    }
    void *event()
    {
        void *made = nullptr;
        EXPECT_EQ(module->event_create(device, 0, &made), YOKE_OK);
        return made;
    }
    void fill(char *block, int value, void *stream)
    {
        EXPECT_EQ(module->fill(device, block, static_cast<uint8_t>(value), kLateBytes, stream),
                  YOKE_OK);
    }
    void copy(char *to, const char *from, int32_t direction, void *stream)
    {
        EXPECT_EQ(module->copy(device, to, from, kLateBytes, direction, stream), YOKE_OK);
    }
};

}  // namespace

// Over the seeds, for in each some of the work may be done early.
TEST(Late, PinnedMemoryIsOldUntilItsStreamWasWaitedFor)
{
    static int old_ones = 0;
    for (int seed = 0; seed < 6; ++seed)
        old_ones += passes_in_child([&] {
            setenv("FAKE_CUDA_SEED", std::to_string(seed).c_str(), 1);
            Device d;
            char *block = d.block(), *host = d.pinned();
            memset(host, 1, kLateBytes);
            d.fill(block, 7, nullptr);
            d.copy(host, block, YOKE_COPY_DEVICE_TO_HOST, nullptr);
            const bool old = host[5] == 1;
            EXPECT_EQ(d.module->stream_synchronize(d.device, nullptr), YOKE_OK);
            EXPECT_EQ(host[5], 7);
            EXPECT_TRUE(old);
        });
    EXPECT_GE(old_ones, 3);
}

TEST(Late, PageableMemoryIsReadAtTheCallAndWrittenBeforeItReturns)
{
    with_seeds([](int) {
        Device d;
        char *block = d.block(), from[kLateBytes], to[kLateBytes];
        memset(from, 3, kLateBytes);
        d.copy(block, from, YOKE_COPY_HOST_TO_DEVICE, nullptr);
        memset(from, 4, kLateBytes);
        d.copy(to, block, YOKE_COPY_DEVICE_TO_HOST, nullptr);
        EXPECT_EQ(to[kLateBytes - 1], 3);
    });
}

TEST(Late, StreamsKnowOnlyTheEventsBetweenThem)
{
    int without = 0;
    for (int seed = 0; seed < 6; ++seed)
        for (const bool waits : {false, true}) {
            const bool in_order = passes_in_child([&] {
                setenv("FAKE_CUDA_SEED", std::to_string(seed).c_str(), 1);
                Device d;
                char *block = d.block(), *host = d.pinned();
                void *first = d.stream(), *second = d.stream(), *event = d.event();
                d.fill(block, 1, first);
                d.fill(block, 2, first);
                EXPECT_EQ(d.module->event_record(d.device, event, first), YOKE_OK);
                if (waits) {
                    EXPECT_EQ(d.module->event_wait(d.device, event, second), YOKE_OK);
                }
                d.copy(host, block, YOKE_COPY_DEVICE_TO_HOST, second);
                EXPECT_EQ(d.module->stream_synchronize(d.device, second), YOKE_OK);
                if (host[0] != 2) _exit(1);  // without a line for each
            });
            if (waits)
                EXPECT_TRUE(in_order) << seed;
            else
                without += in_order;
        }
    EXPECT_LT(without, 6) << "a missing event is never found out";
}

TEST(Late, QueriesEndAndTellTheTruth)
{
    with_seeds([](int) {
        Device d;
        char *block = d.block();
        void *stream = d.stream(), *event = d.event();
        for (int i = 0; i < 5; ++i) d.fill(block, i, stream);
        EXPECT_EQ(d.module->event_record(d.device, event, stream), YOKE_OK);
        int32_t reached = 0, queries = 0;
        while (!reached && ++queries < 100)
            EXPECT_EQ(d.module->event_query(d.device, event, &reached), YOKE_OK);
        EXPECT_TRUE(reached);
        EXPECT_EQ(block[0], 4);
        EXPECT_EQ(d.module->stream_query(d.device, stream, &reached), YOKE_OK);
        EXPECT_TRUE(reached);
    });
}

TEST(Late, WhatQueuedWorkUsesCannotBeFreed)
{
    with_seeds([](int) {
        Device d;
        char *block = d.block();
        void *stream = d.stream();
        for (int i = 0; i < 10; ++i) d.fill(block, i, stream);
        EXPECT_NE(d.module->free(d.device, block, kLateBytes), YOKE_OK);
        EXPECT_EQ(d.module->stream_synchronize(d.device, stream), YOKE_OK);
        EXPECT_EQ(d.module->free(d.device, block, kLateBytes), YOKE_OK);
        EXPECT_NE(d.module->free(d.device, block, kLateBytes), YOKE_OK) << "twice";
    });
}

TEST(Late, HandlesThatAreGoneAreRefused)
{
    with_seeds([](int) {
        Device d;
        void *stream = d.stream(), *event = d.event();
        EXPECT_EQ(d.module->stream_destroy(d.device, stream), YOKE_OK);
        EXPECT_EQ(d.module->stream_synchronize(d.device, stream), YOKE_E_CLOSED);
        EXPECT_EQ(d.module->event_record(d.device, event, stream), YOKE_E_CLOSED);
        EXPECT_EQ(d.module->event_destroy(d.device, event), YOKE_OK);
        EXPECT_EQ(d.module->event_query(d.device, event, nullptr), YOKE_E_CLOSED);
        EXPECT_EQ(d.module->event_record(d.device, event, nullptr), YOKE_E_CLOSED);
    });
}

TEST(Late, ARangeBeyondItsBlockIsRefused)
{
    Device d;
    char *block = d.block(), host[2 * kLateBytes] = {};
    EXPECT_EQ(
        d.module->copy(d.device, block + 1, host, kLateBytes, YOKE_COPY_HOST_TO_DEVICE, nullptr),
        YOKE_E_VALUE);
    EXPECT_EQ(d.module->fill(d.device, block, 0, kLateBytes + 1, nullptr), YOKE_E_VALUE);
    EXPECT_EQ(d.module->free(d.device, block, kLateBytes), YOKE_OK);
}

}  // namespace yoke::test
