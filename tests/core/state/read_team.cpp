// Tensors that several threads read from a file into memory: core/state/read_team.cpp, load.cpp.
#include "core/state/read_team.h"
#include "core/base/config.h"
#include "core/state/load.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"
#include "tests/core/state/file_seam.h"
#include "tests/core/state/manager_states.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace yoke::test {
namespace {

constexpr int64_t kPart = int64_t{8} << 20;  // bytes that a thread reads at once
constexpr int64_t kCounts[] = {
    0, 1, 1000, kPart / 4 - 1, kPart / 4, kPart / 4 + 1, 3 * kPart / 4 + 5};

size_t threads_now()
{
    const std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// A thread that was joined is in the list of the system's for a moment.
void expect_threads(size_t before)
{
    for (int i = 0; i < 1000 && threads_now() != before; ++i) usleep(1000);
    EXPECT_EQ(threads_now(), before);
}

Tensor counted(int64_t count)
{
    Tensor made = filled(count, 0);
    auto *data = reinterpret_cast<uint32_t *>(made->data);
    for (int64_t i = 0; i < count; ++i) data[i] = static_cast<uint32_t>(i * 2654435761 + count);
    return made;
}

std::string key_of(int64_t count)
{
    return "x" + std::to_string(count);
}

// A state of tensors from none of a part to several, in a file.
class ReadTeam : public testing::TestWithParam<int> {
protected:
    void SetUp() override
    {
        set_num_threads(GetParam());
        Seam seam;
        seam.syncs = false;
        Ref<State> state = State::make(StateDict());
        for (const int64_t count : kCounts)
            state->set(key_of(count), State::make(counted(count)), kSave);
        state->set("again", State::make(std::get<Tensor>(state->at(key_of(1000), kSave).value())),
                   kSave);
        save_state(path(), *state, {}, kSave)->wait(-1);
        threads_ = threads_now();
        files_ = open_files();
    }
    void TearDown() override
    {
        expect_threads(threads_);
        EXPECT_EQ(open_files(), files_);
        set_num_threads(former_);
    }
    std::string path() const { return folder_.at("state"); }
    Ref<State> load(yoke_dtype dtype = YOKE_NONE) const
    {
        LoadOptions options;
        options.mmap = false;
        options.dtype = dtype;
        return load_state(path(), options, kLoad);
    }
    void expect_whole() const
    {
        const Ref<State> state = load();
        for (const int64_t count : kCounts) {
            const Tensor expected = counted(count),
                         &found = std::get<Tensor>(state->at(key_of(count), kLoad).value());
            ASSERT_EQ(found->numel, count);
            const auto *words = reinterpret_cast<const uint32_t *>(found->data);
            EXPECT_TRUE(std::equal(words, words + count,
                                   reinterpret_cast<const uint32_t *>(expected->data)))
                << count;
        }
    }

    TemporaryFolder folder_;
    const int32_t former_ = num_threads();
    size_t threads_ = 0, files_ = 0;
};

TEST_P(ReadTeam, GivesTheBitsOfTheFile)
{
    constexpr int kOfHeader = 3;  // calls before the team reads
    const auto own = std::this_thread::get_id();
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::thread::id> readers;
    int calls = 0;
    Seam seam;
    seam.syncs = false;
    // The loading thread reads on after another thread has come.
    seam.fate = [&](const std::string &entry) {
        std::unique_lock lock(mutex);
        if (entry != "pread") return 0;
        readers.insert(std::this_thread::get_id());
        changed.notify_all();
        if (GetParam() > 1 && std::this_thread::get_id() == own && ++calls > kOfHeader)
            changed.wait_for(lock, std::chrono::seconds(60), [&] { return readers.size() > 1; });
        return 0;
    };
    expect_whole();
    EXPECT_LE(readers.size(), static_cast<size_t>(GetParam()));
    EXPECT_EQ(readers.size() > 1, GetParam() > 1);
}

TEST_P(ReadTeam, CastsWhatItHasRead)
{
    const Ref<State> exact = load(), cast = load(YOKE_F64);
    threads_ = threads_now();  // compute threads stay
    for (const int64_t count : kCounts) {
        const Tensor &from = std::get<Tensor>(exact->at(key_of(count), kLoad).value()),
                     &to = std::get<Tensor>(cast->at(key_of(count), kLoad).value());
        ASSERT_EQ(to->dtype, YOKE_F64);
        for (int64_t i = 0; i < count; i += 4099) {
            const double value = reinterpret_cast<const float *>(from->data)[i];
            const double found = reinterpret_cast<const double *>(to->data)[i];
            EXPECT_TRUE(found == value || (std::isnan(found) && std::isnan(value))) << i;
        }
    }
}

// Lets each read fail in turn, in whichever thread.
TEST_P(ReadTeam, RaisesWhatFailedAndLeavesNothing)
{
    int failing = 0, calls = 0;
    do {
        SCOPED_TRACE(++failing);
        std::atomic<int> made{0};
        Seam seam;
        seam.syncs = false;
        seam.fate = [&](const std::string &entry) {
            return entry == "pread" && ++made == failing ? EIO : 0;
        };
        try {
            load();
            EXPECT_LT(made, failing);
        } catch (const Error &error) {
            EXPECT_STREQ(status_name(error.status()), "YOKE_E_IO") << error.what();
            EXPECT_EQ(error.native_code(), EIO);
            EXPECT_NE(std::string(error.what()).find(path()), std::string::npos) << error.what();
        }
        calls = made;
        expect_threads(threads_);
        EXPECT_EQ(open_files(), files_);
    } while (calls >= failing);
    EXPECT_GT(failing, 8);
    expect_whole();
}

TEST_P(ReadTeam, ReadsAllWhereTheSystemGivesNoThread)
{
    in_fresh_process([this] {
        pthread_attr_t none;
        pthread_attr_init(&none);
        // Stack above the size of any address space.
        ASSERT_EQ(pthread_attr_setstacksize(&none, size_t{1} << 52), 0);
        ASSERT_EQ(pthread_setattr_default_np(&none), 0);
        EXPECT_THROW(std::thread([] {}).join(), std::system_error);
        expect_whole();
    });
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadTeam, testing::Values(1, 2, 8));

}  // namespace
}  // namespace yoke::test
