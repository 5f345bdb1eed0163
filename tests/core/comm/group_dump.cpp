// Dumps of groups whose ranks are threads, with lines from the host program: core/comm/group.cpp,
// core/base/script.cpp.
#include "core/base/script.h"
#include "core/base/text.h"
#include "core/comm/coalesce.h"
#include "core/hang/hang.h"
#include "tests/core/comm/threads.h"

#include <unistd.h>

#include <filesystem>

namespace yoke::test {
namespace {

// Provider that reports this line for all threads while it lives.
struct At {
    explicit At(int32_t line) : line_(line) { set_stack_provider(tell, this, nullptr); }
    ~At() { set_stack_provider(nullptr, nullptr, nullptr); }
    static int32_t tell(void *user, const char **file, int32_t *line, const char **function)
    {
        *file = "script.c";
        *line = static_cast<At *>(user)->line_;
        *function = "step";
        return 1;
    }
    int32_t line_;
};

struct DumpFolder {
    DumpFolder() : path(testing::TempDir() + "group_dump." + std::to_string(getpid()))
    {
        std::filesystem::remove_all(path);
        std::filesystem::create_directory(path);
    }
    ~DumpFolder() { std::filesystem::remove_all(path); }
    std::string path;
};

Dump dump_of(const Group &group, const std::string &path)
{
    group.dump(path);
    return read_dump(file_text(path));
}

TEST(GroupDump, TellsCallsWithTheirLines)
{
    const At at(17);
    const DumpFolder folder;
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        group.run(reduce_all(filled(3, 1), YOKE_REDUCE_MAX), false);
        const int32_t other = 1 - group.rank();
        if (group.rank() == 0)
            group.run({YOKE_COMM_SEND, -1, other, filled(2, 1), {}}, false);
        else
            group.run({YOKE_COMM_RECV, -1, other, {}, filled(2, 0)}, false);
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
    const Dump dump = dump_of(*groups[1], folder.path + "/one.json");
    EXPECT_EQ(dump.rank, 1);
    EXPECT_EQ(dump.size(), 2);
    EXPECT_EQ(dump.ranks[0].process, getpid());
    EXPECT_EQ(dump.calls, 1u);
    EXPECT_EQ(dump.received, (std::vector<uint64_t>{1, 0}));
    EXPECT_FALSE(dump.cause);
    EXPECT_NE(dump.ways.find("cpu"), std::string::npos);
    ASSERT_EQ(dump.records.size(), 2u);
    EXPECT_EQ(describe(dump.records[0].call.signature), "all_reduce of 3 float32, max");
    EXPECT_EQ(dump.records[1].call.op, YOKE_COMM_RECV);
    EXPECT_EQ(dump.records[1].call.peer, 0);
    for (const DumpedCall &each : dump.records) {
        EXPECT_EQ(each.file, "script.c");
        EXPECT_EQ(each.line, 17);
        EXPECT_EQ(each.function, "step");
        EXPECT_EQ(each.call.state, CallRecord::kDone);
        EXPECT_GE(each.call.ended_s, each.call.began_s);
        EXPECT_GE(dump.now_s, each.call.ended_s);
    }
}

TEST(GroupDump, IsMadeWhileACallHangsAndOfAFailedGroup)
{
    const At at(3);
    const DumpFolder folder;
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const Ref<Work> hanging = groups[0]->run(barrier(), true);
    while (groups[0]->records()[0].state != CallRecord::kRunning) usleep(1000);
    const std::string zero = folder.path + "/0.json", one = folder.path + "/1.json";
    groups[0]->dump(zero);
    groups[1]->dump(one);
    std::vector<Dump> dumps{read_dump(file_text(zero)), read_dump(file_text(one))};
    std::vector<GroupReport> all = find_hangs(dumps, runs_here);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(all[0].hangs);
    EXPECT_EQ(all[0].blamed, std::vector<int32_t>{1});
    groups[1]->abort("enough");
    expect_error(YOKE_E_CANCELLED, {"enough"}, [&] { hanging->wait(-1); });
    const Dump failed = dump_of(*groups[0], zero);
    ASSERT_TRUE(failed.cause);
    EXPECT_EQ(failed.cause->status, YOKE_E_CANCELLED);
    EXPECT_GE(failed.failed_s, failed.records[0].call.began_s);
    dumps = {failed, dump_of(*groups[1], one)};
    all = find_hangs(dumps, runs_here);
    EXPECT_EQ(all[0].blamed, std::vector<int32_t>{1});
}

TEST(GroupDump, AFileThatCannotBeWrittenIsNamed)
{
    std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
    expect_error(YOKE_E_IO, {"dump", "/nowhere/at/all"},
                 [&] { groups[0]->dump("/nowhere/at/all"); });
}

TEST(GroupDump, CausesTellTheLineOfTheCall)
{
    const At at(21);
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    const auto told = each_rank(
        groups, [](Group &group) { group.run(reduce_all(filled(2 + group.rank(), 1)), false); });
    expect_all_told(told, {"YOKE_E_COMM", " at script.c:21 (step), and rank "});
}

TEST(GroupDump, KeptCallsHaveTheLineAtWhichTheyWereMade)
{
    At at(1);
    std::vector<Ref<Group>> groups = init_threads(1, 0, kCall);
    const Tensor one = filled(2, 1), other = filled(2, 1);
    Coalescing::begin();
    groups[0]->run(reduce_all(one), false);
    at.line_ = 2;
    groups[0]->run(reduce_all(other), false);
    at.line_ = 3;
    Coalescing::end(kCall);
    const std::vector<CallRecord> records = groups[0]->records();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].line->line, 1);
    EXPECT_EQ(records[1].line->line, 2);
}

TEST(GroupDump, TellsOfARankThatMeetsOthersInTheStore)
{
    const At at(8);
    const DumpFolder folder;
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    auto waiting = std::async(std::launch::async, [&] { groups[0]->monitored_barrier(60); });
    const std::string path = folder.path + "/0.json";
    std::optional<DumpedStoreCall> store_call;
    while (!store_call) store_call = dump_of(*groups[0], path).store_call;
    EXPECT_EQ(store_call->call, "monitored_barrier");
    EXPECT_EQ(describe_line(store_call->file, store_call->line, store_call->function),
              "script.c:8 (step)");
    EXPECT_FALSE(dump_of(*groups[1], path).store_call);
    groups[1]->monitored_barrier(60);
    waiting.get();
    EXPECT_FALSE(dump_of(*groups[0], path).store_call);
}

TEST(GroupDump, ReportsReadFilesAndFolders)
{
    const DumpFolder folder;
    std::vector<Ref<Group>> groups = init_threads(2, 0, kCall);
    for (const Ref<Group> &each : groups)
        each->dump(folder.path + "/" + std::to_string(each->rank()) + ".json");
    const auto count = [&](const char *path, const std::vector<std::string> &paths) {
        return std::get<StateList>(hang_report(paths, "hang")->at(path, "hang").value())
            .items.size();
    };
    EXPECT_EQ(count("groups/0/ranks", {folder.path}), 2u);
    EXPECT_EQ(count("problems", {folder.path}), 0u);
    EXPECT_EQ(count("problems", {folder.path + "/0.json", "/dev/zero", "/nowhere"}), 2u);
    expect_error(YOKE_E_VALUE, {"hang", "'paths'"}, [] { hang_report({}, "hang"); });
    expect_error(YOKE_E_IO, {"hang", "/nowhere"}, [] { hang_report({"/nowhere"}, "hang"); });
}

}  // namespace
}  // namespace yoke::test
