// Ranks without threads, descriptors or memory while they make a group: every rank gets the short rank and the
// missing resource.
#include "core/comm/init.h"
#include "core/comm/local_groups.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/comm/threads.h"
#include "tests/core/no_threads.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdlib>
#include <future>
#include <new>

// A sanitizer has its own operator new, and checks that each block is freed by the matching function.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define YOKE_TEST_IS_PLAIN
#endif

#ifdef YOKE_TEST_IS_PLAIN

namespace {

// Blocks of memory that the calling thread still gets before a single allocation fails; below 0 none fails.
thread_local int before_lack = -1;

void *given(size_t bytes)
{
    if (before_lack >= 0 && before_lack-- == 0) throw std::bad_alloc();
    if (void *made = malloc(bytes ? bytes : 1)) return made;
    throw std::bad_alloc();
}

// Threads that the calling thread may still start before the system refuses; below 0 none is refused.
thread_local int before_refusal = -1;

}  // namespace

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                              void *(*run)(void *), void *argument) noexcept
{
    static const auto create =
        reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    if (before_refusal == 0) return EAGAIN;
    if (before_refusal > 0) --before_refusal;
    return create(thread, attributes, run, argument);
}

void *operator new(size_t bytes)
{
    return given(bytes);
}
void *operator new[](size_t bytes)
{
    return given(bytes);
}
void operator delete(void *memory) noexcept
{
    free(memory);
}
void operator delete[](void *memory) noexcept
{
    free(memory);
}
void operator delete(void *memory, size_t) noexcept
{
    free(memory);
}
void operator delete[](void *memory, size_t) noexcept
{
    free(memory);
}

#endif

namespace yoke::test {
namespace {

// Limits this process to so many more descriptors from now on.
[[maybe_unused]] void allow_descriptors(int more)
{
    std::vector<int> next;
    for (int i = 0; i <= more; ++i) next.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit limit = {static_cast<rlim_t>(next.back()), static_cast<rlim_t>(next.back())};
    setrlimit(RLIMIT_NOFILE, &limit);
    for (const int each : next) close(each);
}

std::string url_at(const Port &port)
{
    return format("tcp://127.0.0.1:%u", port.number());
}

InitOptions rank_of(int rank, const std::string &url)
{
    InitOptions options;
    options.backend = "cpu";
    options.arguments.init_method = url;
    options.arguments.rank = rank;
    options.arguments.size = 3;
    options.init_timeout_s = 20;
    return options;
}

// Returns the reports of three ranks; the victim runs `first` before init.
std::vector<std::string> told_by(const std::string &url, int victim,
                                 const std::function<void()> &first,
                                 const std::function<void(Group &)> &then = {})
{
    std::vector<RankProcess> ranks;
    for (const int rank : {0, 1, 2})
        ranks.push_back(RankProcess([&, rank]() -> std::string {
            const struct AtEnd {
                ~AtEnd() { finalize_groups(); }  // rank 0 waits for the other ranks
            } at_end;
            if (first && rank == victim) first();
            const Ref<Group> group = init_group(rank_of(rank, url), "comm.init");
            group->run(barrier(), false);  // a rank with a group raises here
            if (then) then(*group);
            return "made";
        }));
    return results(ranks);
}

std::vector<std::string> told(int victim, const std::function<void()> &first,
                              const std::function<void(Group &)> &then = {})
{
    const Port port;
    return told_by(url_at(port), victim, first, then);
}

void expect_named(const std::vector<std::string> &texts, int victim,
                  std::initializer_list<std::string> parts)
{
    const auto after_status = [](const std::string &text) {
        return text.substr(text.find(' ') + 1);
    };
    for (const std::string &each : texts) {
        EXPECT_EQ(after_status(each), after_status(texts[static_cast<size_t>(victim)]));
        expect_parts(each, parts);
        EXPECT_EQ(each.find("died"), std::string::npos) << each;
    }
}

TEST(Shortage, OfThreadsAtInitIsToldToAll)
{
    for (const int victim : {0, 1}) {
        const auto texts = told(victim, [] { EXPECT_TRUE(forbid_threads()); });
        expect_named(texts, victim,
                     {format("comm.init: rank %d (host", victim), "cannot start", "ulimit -u"});
        expect_parts(texts[static_cast<size_t>(victim)], {"YOKE_E_OOM"});
    }
}

// Tries growing numbers of descriptors: from the least that reaches the other ranks up to the first that suffices.
[[maybe_unused]] void expect_each_lack_to_be_told(
    const char *call, int victim, int least,
    const std::function<std::vector<std::string>(int)> &run)
{
    for (int more = least;; ++more) {
        const std::vector<std::string> texts = run(more);
        if (texts == std::vector<std::string>(3, "made")) {
            EXPECT_GT(more, least + 5);
            return;
        }
        expect_named(
            texts, victim,
            {format("%s: rank %d (host", call, victim), "Too many open files", "ulimit -n"});
        if (testing::Test::HasFailure()) return;
    }
}

// A sanitizer looks at memory through descriptors of its own.
#ifdef YOKE_TEST_IS_PLAIN

TEST(Shortage, OfDescriptorsAtInitIsToldToAll)
{
    expect_each_lack_to_be_told("comm.init", 1, 0,
                                [](int more) { return told(1, [=] { allow_descriptors(more); }); });
    // The port, the watch thread and the other ranks' connections need descriptors.
    for (const int more : {0, 1, 2, 3, 4}) {
        const auto texts = told(0, [=] { allow_descriptors(more); });
        expect_named(texts, 0, {"comm.init: rank 0 (host", "Too many open files", "ulimit -n"});
    }
}

// Needs enough descriptors to read the file.
TEST(Shortage, OfDescriptorsByAFileIsToldToAll)
{
    const std::string path = testing::TempDir() + "yoke-short-" + std::to_string(getpid());
    for (const int victim : {0, 1})
        expect_each_lack_to_be_told("comm.init", victim, 2, [&](int more) {
            return told_by("file://" + path, victim, [=] { allow_descriptors(more); });
        });
    const auto none = told_by("file://" + path + "/none", 0, [] { allow_descriptors(0); });
    expect_parts(none[0],
                 {"YOKE_E_IO comm.init: rank 0 (host", "Too many open files", "ulimit -n"});
    unlink(path.c_str());
}

// The process has used its last descriptors when listening begins.
TEST(Shortage, OfDescriptorsForAnyConnectionIsToldToAll)
{
    const Port port;
    RankProcess zero([&]() -> std::string {
        std::promise<std::string> told;
        PeerOptions options;
        options.size = 3;
        options.about = "host a, process 1";
        options.observer = [&](const PeerEvent &event) {
            told.set_value(
                format("rank %d (%s): %s", event.rank, event.about.c_str(), event.how.c_str()));
        };
        const auto server = StoreServer::open(Socket::listen(port.number()), options);
        allow_descriptors(0);
        return told.get_future().get();
    });
    std::vector<RankProcess> ranks;
    for (const int rank : {1, 2})
        ranks.push_back(RankProcess([&, rank]() -> std::string {
            (void)init_group(rank_of(rank, url_at(port)), "comm.init");
            return "made";
        }));
    const std::string why = zero.result();
    expect_parts(why, {"rank 0 (host a, process 1)", "Too many open files", "ulimit -n"});
    for (const std::string &each : results(ranks)) EXPECT_EQ(each, "YOKE_E_COMM comm.init: " + why);
}

TEST(Shortage, OfDescriptorsAtShrinkIsToldToAll)
{
    for (const int victim : {0, 1, 2})
        expect_each_lack_to_be_told("shrink", victim, 0, [=](int more) {
            return told(-1, {}, [=](Group &group) {
                if (group.rank() == victim) allow_descriptors(more);
                group.shrink(20)->run(barrier(), false);
            });
        });
}

TEST(Shortage, OfDescriptorsAtSplitIsToldToAll)
{
    expect_each_lack_to_be_told("split", 1, 0, [](int more) {
        return told(-1, {}, [=](Group &group) {
            if (group.rank() == 1) allow_descriptors(more);
            group.split(0, 0)->run(barrier(), false);
        });
    });
}

// The first ranks have their threads already. They wait for the other ranks at the store, and must raise.
TEST(Shortage, OfThreadsForRanksOfOneProcessIsRaised)
{
    for (int32_t refused = 1; refused < 4; ++refused) {
        before_refusal = refused - 1;
        expect_error(
            YOKE_E_OOM,
            {format("%s: the system cannot start a thread for rank %d of 4: ", kCall, refused)
                 .c_str()},
            [] { (void)init_threads(4, 20, kCall); });
        before_refusal = -1;
        std::vector<Ref<Group>> groups = init_threads(4, 20, kCall);
        EXPECT_EQ(each_rank(groups, [](Group &group) { group.run(barrier(), false); }),
                  std::vector<std::string>(4));
    }
}

// Fails each allocation in turn. A rank cannot use its subgroup if another rank has none.
TEST(Shortage, OfMemoryAtSplitIsToldToAll)
{
    bool is_enough = false;
    for (int piece = 0; !is_enough; ++piece) {
        std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
        const auto told = each_rank(groups, [&](Group &group) {
            const bool is_short = group.rank() == 1;
            if (is_short) before_lack = piece;
            const Ref<Group> part = group.split(0, 0);
            if (is_short) is_enough = std::exchange(before_lack, -1) >= 0;
            part->run(barrier(), false);
        });
        // The cleanup after split can work without this memory.
        if (told != std::vector<std::string>(2))
            expect_all_told(told, {"YOKE_E_OOM split: rank 1 (host", "memory"});
        EXPECT_FALSE(is_enough && piece < 50);
        if (testing::Test::HasFailure()) return;
    }
}

#endif

}  // namespace
}  // namespace yoke::test
