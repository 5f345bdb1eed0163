// Processes that call init repeatedly, with ranks that have left meanwhile or are new: core/comm/init.cpp.
#include "core/comm/init.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

InitOptions rank_of(int rank, int size, const std::string &url, double timeout_s = 20)
{
    InitOptions options;
    options.backend = "cpu";
    options.arguments.init_method = url;
    options.arguments.rank = rank;
    options.arguments.size = size;
    options.init_timeout_s = timeout_s;
    return options;
}

std::string url_of(const Port &port)
{
    return format("tcp://127.0.0.1:%u", port.number());
}

class FileUrl {
public:
    explicit FileUrl(const char *name)
        : path_(testing::TempDir() + "yoke-init-" + name + std::to_string(getpid()))
    {
    }
    ~FileUrl() { unlink(path_.c_str()); }
    std::string text() const { return "file://" + path_; }

private:
    const std::string path_;
};

// Gate that some ranks open and other ranks wait for.
class Gate {
public:
    Gate()
    {
        if (pipe(ends_) != 0) abort();
    }
    void open() const
    {
        if (write(ends_[1], "", 1) != 1) abort();
    }
    void pass() const
    {
        char byte = 0;
        if (read(ends_[0], &byte, 1) != 1) abort();
    }

private:
    int ends_[2];
};

TEST(Init, OneThatWasInAnotherJobMeetsAFreshProcess)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            if (rank == 0) (void)init_group(rank_of(0, 1, "env://"), "comm.init");
            finalize_groups();
            return met(init_group(rank_of(rank, 2, url_of(port)), "comm.init"));
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2", "1 of 2"}));
}

TEST(Init, AgainIsAtOnceWhileAllAreThere)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            const Ref<Group> first = init_group(rank_of(rank, 2, url_of(port)), "comm.init");
            const Ref<Group> again = init_group(rank_of(rank, 2, url_of(port)), "comm.init");
            return met(first) + ", " + met(again);
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2, 0 of 2", "1 of 2, 1 of 2"}));
}

void set_variables(int rank, int size, const Port &port)
{
    for (const auto &[name, value] : variables_of(rank, size, port.number()))
        setenv(name.c_str(), value.c_str(), 1);
}

Ref<Group> init_by_variables()
{
    InitOptions options;
    options.backend = "cpu";
    options.init_timeout_s = 20;
    return init_group(options, "comm.init");
}

TEST(Init, VariablesThatHaveChangedAreAnErrorWhileTheirGroupLives)
{
    const Port first, second;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            set_variables(0, 1, first);
            Ref<Group> group = init_by_variables();
            std::string text = met(init_by_variables()) + ", ";
            set_variables(rank, 2, second);
            try {
                (void)init_by_variables();
            } catch (const Error &error) {
                text += std::string(status_name(error.status())) + " " + error.what();
            }
            text += ", " + met(group);
            if (rank == 0) group->abort("another job comes");
            group = nullptr;
            if (rank == 1) finalize_groups();
            return text + ", " + met(init_by_variables());
        }));
    const std::string before = format("rank 0 of 1 at 127.0.0.1:%u", first.number());
    const auto texts = results(ranks);
    for (const int rank : {0, 1})
        expect_parts(texts[static_cast<size_t>(rank)],
                     {"0 of 1, YOKE_E_STATE comm.init: ", before,
                      format("rank %d of 2 at 127.0.0.1:%u", rank, second.number()), "init_method",
                      format(", 0 of 1, %d of 2", rank)});
}

// The port is free for the smaller job, though a group of the former job still exists.
TEST(Init, ASmallerJobAtTheSamePortFollowsOneThatHasFailed)
{
    const Port port;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 2})
        ranks.push_back(RankProcess([&, rank] {
            set_variables(rank, 3, port);
            const Ref<Group> group = init_by_variables();
            met(group);
            if (rank == 2) raise(SIGKILL);
            try {
                met(group);
            } catch (const Error &) {
            }
            set_variables(rank, 2, port);
            return met(init_by_variables());
        }));
    EXPECT_EQ(ranks[0].result(), "0 of 2");
    EXPECT_EQ(ranks[1].result(), "1 of 2");
}

// Lets all ranks meet again after `leaver` has left. The other ranks keep their groups, or drop them too.
void expect_to_meet_anew(int leaver, bool do_others_keep)
{
    const Port port;
    const Gate left;
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 2})
        ranks.push_back(RankProcess([&, rank] {
            Ref<Group> first = init_group(rank_of(rank, 3, url_of(port)), "comm.init");
            std::string text = met(first);
            if (rank != leaver) left.pass();
            if (rank == leaver || !do_others_keep) {
                first = nullptr;
                finalize_groups();
            }
            if (rank == leaver) left.open(), left.open();
            return text + ", " + met(init_group(rank_of(rank, 3, url_of(port)), "comm.init"));
        }));
    EXPECT_EQ(results(ranks),
              (std::vector<std::string>{"0 of 3, 0 of 3", "1 of 3, 1 of 3", "2 of 3, 2 of 3"}))
        << "rank " << leaver << (do_others_keep ? " alone" : " first") << " has left";
}

TEST(Init, RanksMeetAnewWhereSomeHaveLeft)
{
    for (const int leaver : {1, 2})
        for (const bool do_others_keep : {true, false}) expect_to_meet_anew(leaver, do_others_keep);
}

// Rank 0 waits for rank 1 while rank 1 leaves, and has no cause to report to a launcher.
TEST(Init, OneThatLeavesWhileAnotherWaitsForItIsMetAnew)
{
    const Port port;
    const Gate began;
    const std::string causes = testing::TempDir() + "yoke-init-cause-" + std::to_string(getpid());
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            setenv("TORCHELASTIC_ERROR_FILE", causes.c_str(), 1);
            Ref<Group> first = init_group(rank_of(rank, 2, url_of(port)), "comm.init");
            if (rank == 0) began.open();
            if (rank == 1) {
                began.pass();
                first = nullptr;
                finalize_groups();
            }
            return met(init_group(rank_of(rank, 2, url_of(port)), "comm.init"));
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2", "1 of 2"}));
    EXPECT_NE(access(causes.c_str(), F_OK), 0);
}

TEST(Init, AFreshProcessTakesThePlaceOfOneThatHasDied)
{
    const Port port;
    const Gate died;
    RankProcess first([&]() -> std::string {
        const Ref<Group> group = init_group(rank_of(1, 2, url_of(port)), "comm.init");
        met(group);
        raise(SIGKILL);
        return "";
    });
    RankProcess survivor([&] {
        const Ref<Group> group = init_group(rank_of(0, 2, url_of(port)), "comm.init");
        met(group);
        died.pass();
        return met(init_group(rank_of(0, 2, url_of(port)), "comm.init"));
    });
    first.result();
    died.open();
    RankProcess second([&] { return met(init_group(rank_of(1, 2, url_of(port)), "comm.init")); });
    EXPECT_EQ(survivor.result(), "0 of 2");
    EXPECT_EQ(second.result(), "1 of 2");
}

TEST(Init, APathThatWasWrongIsNoTurnOfTheRightOne)
{
    const FileUrl file("path");
    const std::string url = file.text();
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1})
        ranks.push_back(RankProcess([&, rank] {
            if (rank == 1)
                expect_error(YOKE_E_IO, {"comm.init: rank 1 (host", "/nosuch/folder"}, [] {
                    (void)init_group(rank_of(1, 2, "file:///nosuch/folder/file"), "comm.init");
                });
            return met(init_group(rank_of(rank, 2, url), "comm.init"));
        }));
    EXPECT_EQ(results(ranks), (std::vector<std::string>{"0 of 2", "1 of 2"}));
}

TEST(Init, NamesItselfWhereASettingOrALaunchersVariableCannotBeRead)
{
    using Setting = std::pair<const char *, const char *>;
    for (const auto &[name, value] :
         {Setting{"YOKE_COMM_SILENCE", "long"}, {"SLURM_STEP_NODELIST", "a[3-"}}) {
        RankProcess rank([name = name, value = value]() -> std::string {
            setenv(name, value, 1);
            (void)init_group(rank_of(0, 1, "env://"), "comm.init");
            return "";
        });
        expect_parts(rank.result(), {"YOKE_E_VALUE comm.init: ", name, value});
    }
}

TEST(Init, ByAFileAFreshProcessMeetsOneThatHasItOpen)
{
    const FileUrl file("open");
    const std::string url = file.text();
    const Gate ended;
    RankProcess survivor([&] {
        const Ref<Group> group = init_group(rank_of(0, 2, url), "comm.init");
        const std::string text = met(group);
        ended.pass();
        return text + ", " + met(init_group(rank_of(0, 2, url), "comm.init"));
    });
    RankProcess first([&] { return met(init_group(rank_of(1, 2, url), "comm.init")); });
    EXPECT_EQ(first.result(), "1 of 2");
    ended.open();
    RankProcess second([&] { return met(init_group(rank_of(1, 2, url), "comm.init")); });
    EXPECT_EQ(survivor.result(), "0 of 2, 0 of 2");
    EXPECT_EQ(second.result(), "1 of 2");
}

TEST(Init, ByAFileAnAbortIsHeardAmidACall)
{
    const FileUrl file("abort");
    const std::string url = file.text();
    const Gate heard;
    RankProcess aborting([&]() -> std::string {
        Ref<Group> group = init_group(rank_of(0, 2, url), "comm.init");
        met(group);
        group->abort("the test says so");
        heard.pass();
        group = {};
        finalize_groups();
        return "";
    });
    RankProcess waiting([&] {
        const Ref<Group> group = init_group(rank_of(1, 2, url), "comm.init");
        met(group);
        return met(group);
    });
    expect_parts(waiting.result(),
                 {"YOKE_E_CANCELLED", "abort() on rank 0 (host", "the test says so"});
    heard.open();
    aborting.result();
    EXPECT_NE(access(url.substr(7).c_str(), F_OK), 0) << "the file is left over";
}

TEST(Init, ByAFileADeathIsToldToAll)
{
    const FileUrl file("death");
    const std::string url = file.text();
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 2})
        ranks.push_back(RankProcess([&, rank] {
            const Ref<Group> group = init_group(rank_of(rank, 3, url), "comm.init");
            met(group);
            if (rank == 1) raise(SIGKILL);
            return met(group);
        }));
    for (const int rank : {0, 2})
        expect_parts(ranks[static_cast<size_t>(rank)].result(),
                     {"YOKE_E_COMM", "rank 1 (host", process_of(ranks[1]).c_str(), "died"});
}

// ---- Parts without rank 0 -----------------------------------------------------------------------------------------

// Stops rank 1 of three, while rank 2 waits for rank 1 in a subgroup of both.
void expect_silence_to_be_noticed(const std::function<Ref<Group>(int rank)> &whole)
{
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 2})
        ranks.push_back(RankProcess([&, rank]() -> std::string {
            setenv("YOKE_COMM_SILENCE", "1", 1);
            const Ref<Group> group = whole(rank);
            const Ref<Group> part = group->split(group->rank() == 0 ? 0 : 1, 0);
            met(part);
            if (group->rank() == 1) raise(SIGSTOP);
            return met(group->rank() == 0 ? group : part);
        }));
    expect_parts(ranks[2].result(),
                 {"YOKE_E_COMM all_reduce: rank 0 (host", "sent no heartbeat for",
                  "is in all_reduce of 1 float32, sum"});
    expect_parts(ranks[0].result(),
                 {"YOKE_E_COMM all_reduce: rank 1 (host", "sent no heartbeat for"});
}

TEST(Init, ByAFileSilenceIsNoticed)
{
    const FileUrl file("silence");
    const std::string url = file.text();
    expect_silence_to_be_noticed(
        [&](int rank) { return init_group(rank_of(rank, 3, url), "comm.init"); });
}

TEST(Init, APartWithoutRankZeroNoticesSilence)
{
    const Port port;
    expect_silence_to_be_noticed([&](int rank) {
        InitOptions options = rank_of(rank, 3, url_of(port));
        options.timeout_s = 15;
        return init_group(options, "comm.init");
    });
}

TEST(Init, APartOfAShrunkGroupWithoutItsLeaderNoticesSilence)
{
    const Port port;
    expect_silence_to_be_noticed([&](int rank) {
        InitOptions options = rank_of(rank, 3, url_of(port));
        options.timeout_s = 15;
        const Ref<Group> group = init_group(options, "comm.init");
        return group->shrink(20);
    });
}

}  // namespace
}  // namespace yoke::test
