// Writes beside a call that is under way: core/comm/in_use.h.
#include "core/comm/in_use.h"
#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

std::string found_by(const InUse &in_use)
{
    try {
        in_use.check("all_reduce");
    } catch (const Error &error) {
        return error.what();
    }
    return "";
}

void write_result(InUse &in_use, const Tensor &out)
{
    const InUse::Writing writing(*out, nullptr);
    in_use.note_former_writer();
    out->storage->note_written("all_reduce");
    in_use.note_own_write();
}

TEST(InUse, TakesTheCallsOwnWriteForNoOtherOne)
{
    const Tensor in = filled(2, 1), out = filled(2, 0);
    InUse one(out, out, nullptr), two(in, out, nullptr);
    EXPECT_EQ(found_by(one), "");
    write_result(one, out);
    EXPECT_EQ(found_by(one), "");
    EXPECT_NE(found_by(two), "");
    in->storage->note_written("add_");
    EXPECT_EQ(found_by(one), "");
}

TEST(InUse, FindsAWriteBetweenTheLastCheckAndTheCallsOwn)
{
    const Tensor in = filled(2, 1), out = filled(2, 0);
    InUse in_use(in, out, nullptr);
    EXPECT_EQ(found_by(in_use), "");
    out->storage->note_written("add_");
    write_result(in_use, out);
    EXPECT_NE(found_by(in_use).find("add_ wrote"), std::string::npos) << found_by(in_use);
}

TEST(InUse, FollowsItsResultAloneOnceThatIsWritten)
{
    const Tensor in = filled(2, 1), out = filled(2, 0);
    InUse in_use(in, out, nullptr);
    write_result(in_use, out);
    in->storage->note_written("add_");
    EXPECT_EQ(found_by(in_use), "");
    out->storage->note_written("mul_");
    EXPECT_NE(found_by(in_use).find("mul_ wrote"), std::string::npos);
}

}  // namespace
}  // namespace yoke::test
