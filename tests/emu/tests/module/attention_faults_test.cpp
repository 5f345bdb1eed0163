// Calls of cuDNN, and calls for attention, fail once each; see faults.h.
#include "faults.h"
#include "tests/backend/launch.h"

namespace yoke::test {

namespace {

constexpr uint16_t kOne = 0x3c00;  // 1 in half precision

const std::vector<int64_t> kHeads = {1, 2, 2, 8}, kShared = {16, 0, 8, 1}, kRows = {1, 2, 2};

yoke_status finish(Record &record, const Scenario &s)
{
    return record.param(int64_t{0})
        .param(1.0)
        .param(0.0)
        .param(int64_t{0})
        .param(int64_t{0})
        .run(s.table());
}

}  // namespace

// Two query heads share a head of keys, so the gradient has two. If cuDNN fails before its work, Yoke's own kernels
// must give equal results.
TEST(Faults, OfAttention)
{
    expect_every_call_may_fail(
        [](Scenario &s) {
            const uint16_t *ones = s.upload(std::vector<uint16_t>(32, kOne));
            auto *out = s.upload(std::vector<uint16_t>(4 * 32));
            float *rows = s.upload(std::vector<float>(4));
            s.wait();
            s.step([&] {
                Record record(YOKE_OP__ATTENTION, s.device);
                record.in(ones, kHeads).in(ones, kHeads, kShared).in(ones, kHeads, kShared);
                return finish(record.absent().out(out, kHeads).out(rows, kRows), s);
            });
            s.step([&] {
                Record record(YOKE_OP__ATTENTION_BACKWARD, s.device);
                record.in(ones, kHeads).in(ones, kHeads).in(ones, kHeads, kShared);
                record.in(ones, kHeads, kShared).absent().in<uint16_t>(out, kHeads);
                record.in<float>(rows, kRows);
                for (int i = 1; i <= 3; ++i) record.out(out + 32 * i, kHeads);
                return finish(record, s);
            });
            const std::vector<uint16_t> got = s.download(out, 4 * 32);
            EXPECT_EQ(got[0], kOne);
            EXPECT_EQ(got[32] & 0x7fff, 0) << "the gradient of equal scores";
            EXPECT_EQ(got[127], kOne) << "two queries give half of it each";
            s.wait();
            s.free(rows, 16);
            s.free(const_cast<uint16_t *>(ones), 64);
        },
        {"cudnnBackendExecute", "cuDNN's kernel", "cudaMalloc", "cudaLaunchKernel"},
        kMostOfMany / 3);
}

}  // namespace yoke::test
