// Streams, events and the order of work on them.
#include "contract.h"

namespace yoke::test {

class Streams : public Contract {
protected:
    void SetUp() override
    {
        Contract::SetUp();
        if (device_ && !table_->stream_create) GTEST_SKIP() << "this backend has no streams";
    }
    void *stream(int32_t priority = 0)
    {
        void *made = nullptr;
        EXPECT_DONE(table_->stream_create(device_, priority, &made));
        EXPECT_NE(made, nullptr) << "NULL is the default stream";
        return made;
    }
    void *event(uint32_t flags = 0)
    {
        void *made = nullptr;
        EXPECT_DONE(table_->event_create(device_, flags, &made));
        return made;
    }
};
YOKE_ON_EVERY_BACKEND(Streams);

TEST_P(Streams, AStreamThatWasWaitedForIsIdle)
{
    for (void *one : {static_cast<void *>(nullptr), stream(), stream(1), stream(-5)}) {
        auto *data = static_cast<uint8_t *>(block(1 << 20));
        ASSERT_DONE(table_->fill(device_, data, 3, 1 << 20, one));
        ASSERT_DONE(table_->stream_synchronize(device_, one));
        int32_t idle = -1;
        ASSERT_DONE(table_->stream_query(device_, one, &idle));
        EXPECT_EQ(idle, 1);
        EXPECT_EQ(download(data + (1 << 20) - 1, 1)[0], 3);
        if (one) {
            EXPECT_DONE(table_->stream_destroy(device_, one));
        }
    }
}

TEST_P(Streams, WorkOnOneStreamHappensInOrder)
{
    void *one = stream();
    constexpr size_t kBytes = 300'000;
    auto *data = static_cast<uint8_t *>(block(kBytes)),
         *copy = static_cast<uint8_t *>(block(kBytes));
    for (int i = 0; i < 20; ++i) {
        ASSERT_DONE(table_->fill(device_, data, static_cast<uint8_t>(i), kBytes, one));
        ASSERT_DONE(table_->copy(device_, copy, data, kBytes, YOKE_COPY_DEVICE, one));
    }
    ASSERT_DONE(table_->stream_synchronize(device_, one));
    EXPECT_EQ(download(copy, kBytes), std::vector<uint8_t>(kBytes, 19));
    EXPECT_DONE(table_->stream_destroy(device_, one));
}

TEST_P(Streams, AnEventOrdersOneStreamBehindAnother)
{
    void *first = stream(), *second = stream(), *ready = event();
    constexpr size_t kBytes = 4 << 20;
    auto *data = static_cast<uint8_t *>(block(kBytes)),
         *copy = static_cast<uint8_t *>(block(kBytes));
    for (int i = 1; i < 6; ++i) {
        ASSERT_DONE(table_->fill(device_, data, static_cast<uint8_t>(i), kBytes, first));
        ASSERT_DONE(table_->event_record(device_, ready, first));
        ASSERT_DONE(table_->event_wait(device_, ready, second));
        ASSERT_DONE(table_->copy(device_, copy, data, kBytes, YOKE_COPY_DEVICE, second));
        ASSERT_DONE(table_->stream_synchronize(device_, second));
        EXPECT_EQ(download(copy + kBytes - 1, 1)[0], i);
    }
    EXPECT_DONE(table_->event_destroy(device_, ready));
    EXPECT_DONE(table_->stream_destroy(device_, first));
    EXPECT_DONE(table_->stream_destroy(device_, second));
}

TEST_P(Streams, AnEventThatWasNeverRecordedCountsAsReached)
{
    void *one = event();
    int32_t reached = -1;
    ASSERT_DONE(table_->event_query(device_, one, &reached));
    EXPECT_EQ(reached, 1);
    EXPECT_DONE(table_->event_synchronize(device_, one));
    EXPECT_DONE(table_->event_wait(device_, one, nullptr));
    EXPECT_DONE(table_->event_destroy(device_, one));
}

TEST_P(Streams, AnEventIsReachedOnceItsStreamGotThere)
{
    void *one = event();
    auto *data = static_cast<uint8_t *>(block(1 << 20));
    ASSERT_DONE(table_->fill(device_, data, 1, 1 << 20, nullptr));
    ASSERT_DONE(table_->event_record(device_, one, nullptr));
    ASSERT_DONE(table_->event_synchronize(device_, one));
    int32_t reached = -1;
    ASSERT_DONE(table_->event_query(device_, one, &reached));
    EXPECT_EQ(reached, 1);
    EXPECT_DONE(table_->event_destroy(device_, one));
}

TEST_P(Streams, TimeBetweenTwoEventsIsNotNegative)
{
    void *start = event(YOKE_EVENT_TIMING), *end = event(YOKE_EVENT_TIMING);
    auto *data = static_cast<uint8_t *>(block(8 << 20));
    ASSERT_DONE(table_->event_record(device_, start, nullptr));
    ASSERT_DONE(table_->fill(device_, data, 5, 8 << 20, nullptr));
    ASSERT_DONE(table_->event_record(device_, end, nullptr));
    ASSERT_DONE(table_->event_synchronize(device_, end));
    double seconds = -1;
    ASSERT_DONE(table_->event_elapsed(device_, start, end, &seconds));
    EXPECT_GE(seconds, 0.0);
    EXPECT_LT(seconds, 3600.0) << "seconds, not another unit";
    EXPECT_DONE(table_->event_destroy(device_, start));
    EXPECT_DONE(table_->event_destroy(device_, end));
}

TEST_P(Streams, TimeWantsTwoRecordedEventsWithTiming)
{
    void *timed = event(YOKE_EVENT_TIMING), *plain = event(), *never = event(YOKE_EVENT_TIMING);
    ASSERT_DONE(table_->event_record(device_, timed, nullptr));
    ASSERT_DONE(table_->event_record(device_, plain, nullptr));
    double seconds = -7;
    expect_failure(table_->event_elapsed(device_, timed, plain, &seconds), "an end without timing");
    expect_failure(table_->event_elapsed(device_, plain, timed, &seconds),
                   "a start without timing");
    expect_failure(table_->event_elapsed(device_, timed, never, &seconds),
                   "an end that was not recorded");
    expect_failure(table_->event_elapsed(device_, never, timed, &seconds),
                   "a start that was not recorded");
    EXPECT_EQ(seconds, -7) << "a failure leaves its out parameter alone";
    for (void *one : {timed, plain, never}) EXPECT_DONE(table_->event_destroy(device_, one));
}

TEST_P(Streams, TheDefaultStreamCannotBeDestroyed)
{
    expect_failure(table_->stream_destroy(device_, nullptr), "stream_destroy");
}

}  // namespace yoke::test
