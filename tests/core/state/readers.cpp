// Readers beside a writer: at each call of a reader the writer may put a new state in place. The reader finds a whole
// state, and reports no damage: core/state/manager*.cpp, stored.cpp, find_state.cpp.
#include "core/state/load.h"
#include "core/state/set_index.h"
#include "tests/core/expect_error.h"
#include "tests/core/heard.h"
#include "tests/core/state/file_seam.h"
#include "tests/core/state/manager_states.h"

#include <filesystem>
#include <future>

namespace yoke::test {
namespace {

// Reads repeatedly. In each reading the writer comes in before a later call of the reader, and then before each call,
// while the writer has more to write. `write` gets the number of its calls in this reading. Returns the number of
// readings; the last reading met no writer.
int read_beside(const std::function<void()> &before, const std::function<bool(int)> &write,
                const std::function<void()> &read)
{
    for (int first = 1;; ++first) {
        before();
        Seam seam;
        seam.syncs = false;
        int calls = 0, written = 0;
        bool is_writing = false, has_more = true;
        seam.fate = [&](const std::string &) {
            if (is_writing || ++calls < first || !has_more) return 0;
            is_writing = true;
            has_more = write(written++);
            is_writing = false;
            return 0;
        };
        SCOPED_TRACE("the writer comes before call " + std::to_string(first));
        read();
        if (calls < first || testing::Test::HasFailure()) return first;
    }
}

constexpr int kFewestCalls = 8;  // lower bound for any reader

class ReadersOfSteps : public testing::TestWithParam<int> {
protected:
    void start()
    {
        writer_ = nullptr;
        std::filesystem::remove_all(folder_.at("run"));
        writer_ = manager_of(folder_.at("run"), 1);
        save_version(*writer_, 1, 1);
        newest_ = 1;
    }
    // Saves once more, as another step or as the same step anew.
    bool write(int i, bool is_anew)
    {
        ++newest_;
        save_version(*writer_, is_anew ? 1 : newest_, newest_);
        return i + 1 < GetParam();
    }

    TemporaryFolder folder_;
    Ref<CheckpointManager> writer_;
    int64_t newest_ = 0;
};

TEST_P(ReadersOfSteps, AlwaysFindOneThatIsWhole)
{
    for (const bool is_anew : {false, true}) {
        const Ref<CheckpointManager> reader = manager_of(folder_.at("run"));
        const Heard heard;
        const auto start = [this] { this->start(); };
        const auto write = [&](int i) { return this->write(i, is_anew); };
        EXPECT_GT(read_beside(start, write,
                              [&] {
                                  const int64_t version = load_version(*reader);
                                  EXPECT_GE(version, 1);
                                  EXPECT_LE(version, newest_);
                              }),
                  kFewestCalls);
        EXPECT_GT(read_beside(start, write, [&] { EXPECT_EQ(reader->steps(kLoad).size(), 1u); }),
                  kFewestCalls);
        EXPECT_EQ(heard.lines, std::vector<std::string>{});
    }
}

TEST_P(ReadersOfSteps, LoadTheStepThatTheyAskForWhileItIsSavedAnew)
{
    const Ref<CheckpointManager> reader = manager_of(folder_.at("run"));
    read_beside([this] { start(); }, [this](int i) { return write(i, true); },
                [&] { EXPECT_GE(load_version(*reader, {.step = 1}), 1); });
}

INSTANTIATE_TEST_SUITE_P(Writes, ReadersOfSteps, testing::Values(1, 3));

// Saves a set in place of a file, another set in its place, and a file again.
class ReadersOfSets : public testing::TestWithParam<const char *> {
protected:
    std::string path() const { return folder_.at("run/model.safetensors"); }
    void save(int64_t version, bool is_set)
    {
        SaveOptions options;
        options.max_shard = is_set ? 24 : 0;
        save_state(path(), *state_of_version(version), options, kSave)->wait(-1);
    }
    void start(bool is_set)
    {
        std::filesystem::remove_all(folder_.at("run"));
        std::filesystem::create_directory(folder_.at("run"));
        save(1, is_set);
    }

    TemporaryFolder folder_;
};

TEST_P(ReadersOfSets, AlwaysFindOneThatIsWhole)
{
    for (const bool starts_as_set : {false, true})
        for (const int writes : {1, 3})
            EXPECT_GT(read_beside([&] { start(starts_as_set); },
                                  [&](int i) {
                                      save(i + 2, starts_as_set != (i % 3 != 1));
                                      return i + 1 < writes;
                                  },
                                  [&] {
                                      const std::string place = folder_.at(GetParam());
                                      EXPECT_GE(version_of(*load_state(place, {}, kLoad)), 1);
                                  }),
                      kFewestCalls);
}

INSTANTIATE_TEST_SUITE_P(Places, ReadersOfSets, testing::Values("run", "run/model.safetensors"));

// ---- A single writer --------------------------------------------------------------------------------------------

TEST(Manager, AFolderThatIsMadeAnewIsAnothersToLock)
{
    const TemporaryFolder folder;
    const std::string path = folder.at("run");
    const Ref<CheckpointManager> first = manager_of(path);
    for (const int64_t step : {1, 2}) save_version(*first, step, step);
    std::filesystem::rename(path, folder.at("moved"));
    Ref<CheckpointManager> second = manager_of(path);
    save_version(*second, 7, 7);
    expect_error(YOKE_E_STATE, {kSave, "writes to", "already"},
                 [&] { save_version(*first, 3, 3); });
    // No manager holds the moved folder either.
    save_version(*manager_of(folder.at("moved")), 3, 3);
    second = nullptr;
    save_version(*first, 4, 4);
    EXPECT_EQ(first->steps(kLoad), (std::vector<int64_t>{7, 4}));
    std::filesystem::remove_all(path);
    save_version(*first, 5, 5);
    EXPECT_EQ(first->steps(kLoad), std::vector<int64_t>{5});
}

// ---- Finalisers in the writing thread ---------------------------------------------------------------------------

struct Finaliser {
    std::string path;
    std::promise<std::string> told;

    // Finaliser of a host program for its own memory. The finaliser saves in the writing thread, so the save would
    // wait for itself.
    static void run(void *user)
    {
        auto &self = *static_cast<Finaliser *>(user);
        std::string text;
        try {
            save_state(self.path, *state_of_version(2), {}, kSave);
        } catch (const Error &error) {
            text = error.what();
        }
        self.told.set_value(text);
    }
};

TEST(Saves, AFinaliserInTheThreadOfOneCannotWaitForIt)
{
    const TemporaryFolder folder;
    Finaliser finaliser{folder.at("other"), {}};
    float memory[4] = {};
    const int64_t shape[] = {4};
    std::promise<void> released;
    Seam seam;
    seam.syncs = false;
    // The writer goes on when it alone has the memory.
    seam.fate = [&, wait = released.get_future().share()](const std::string &entry) {
        if (entry == "write") wait.wait();
        return 0;
    };
    Ref<State> state = State::make(StateDict());
    state->set("x",
               State::make(from_memory(memory, shape, nullptr, YOKE_F32, open_device("cpu"),
                                       Finaliser::run, &finaliser, kSave)),
               kSave);
    SaveOptions options;
    options.is_blocking = false;
    const Ref<Work> work = save_state(folder.at("state"), *state, options, kSave);
    state = nullptr;
    released.set_value();
    EXPECT_TRUE(work->wait(-1));
    const std::string text = finaliser.told.get_future().get();
    EXPECT_NE(text.find("the thread that writes the earlier save"), std::string::npos) << text;
    EXPECT_EQ(folder.names(), std::vector<std::string>{"state"});
}

}  // namespace
}  // namespace yoke::test
