// Planted races: tests/core/memory/ordering.h reports each race, and not its clean twin.
#include "tests/core/memory/ordering.h"
#include "tests/core/memory/units.h"

#include <gtest/gtest.h>

#include <sstream>

namespace yoke {
namespace {

using test::kMiB;
using test::Ordering;

// Plays a story about a block of memory. The words name streams A to C, and D, the default stream:
//   uA, uA/  work of A uses the block, or its upper half
//   rA1, wB1 A records event 1, B waits for event 1
//   W1       the next owner of the block waits for event 1
//   q1, y1   the host program asks for event 1, or waits for event 1
//   sA, run  the host program waits for A; all work ends by itself
//   end      stream B or D gets the block, or the host program gives it back or unmaps it, as the stage says
class Stage {
public:
    enum class End { kOtherStream, kDefaultStream, kFree, kUnmap };

    explicit Stage(End end) : end_(end)
    {
        hollow_.watch(&ordering_);
        for (int i = 0; i < 3; ++i) must(table_.stream_create(hollow_.handle(), 0, &streams_[i]));
        for (void *&event : events_) must(table_.event_create(hollow_.handle(), 0, &event));
        void *start = nullptr;
        if (end == End::kUnmap) {
            must(table_.vmm_reserve(hollow_.handle(), kBytes, &start));
            must(table_.vmm_create(hollow_.handle(), kBytes, &chunk_));
            must(table_.vmm_map(hollow_.handle(), start, kBytes, chunk_));
        } else {
            must(table_.alloc(hollow_.handle(), kBytes, &start));
        }
        address_ = reinterpret_cast<uint64_t>(start);
    }

    // Returns how many races were found.
    size_t play(const std::string &story)
    {
        std::istringstream words(story);
        for (std::string word; words >> word;) act(word);
        return ordering_.races().size();
    }

private:
    static constexpr uint64_t kBytes = 2 * kMiB;

    static void must(yoke_status status) { ASSERT_EQ(status, YOKE_OK); }
    void *stream(char name) const { return name == 'D' ? nullptr : streams_[name - 'A']; }
    void *event(char digit) const { return events_[digit - '0']; }

    void act(const std::string &word)
    {
        void *const device = hollow_.handle();
        int32_t ignored = 0;
        if (word == "run") return hollow_.work().finish();
        if (word == "end") return finish();
        switch (word[0]) {
            case 'u': {
                const bool is_half = word.back() == '/';
                return hollow_.use(stream(word[1]), address_ + (is_half ? kBytes / 2 : 0),
                                   is_half ? kBytes / 2 : kBytes);
            }
            case 'r':
                return must(table_.event_record(device, event(word[2]), stream(word[1])));
            case 'w':
                return must(table_.event_wait(device, event(word[2]), stream(word[1])));
            case 'W':
                if (end_ == End::kOtherStream) return act(std::string("wB") + word[1]);
                if (end_ == End::kDefaultStream) return act(std::string("wD") + word[1]);
                return act(std::string("y") + word[1]);
            case 'q':
                return must(table_.event_query(device, event(word[1]), &ignored));
            case 'y':
                return must(table_.event_synchronize(device, event(word[1])));
            case 's':
                return must(table_.stream_synchronize(device, stream(word[1])));
            default:
                FAIL() << word;
        }
    }
    void finish()
    {
        void *const start = reinterpret_cast<void *>(address_);
        switch (end_) {
            case End::kOtherStream:
                return ordering_.hand_out(stream('B'), address_, kBytes);
            case End::kDefaultStream:
                return ordering_.hand_out(stream('D'), address_, kBytes);
            case End::kFree:
                return must(table_.free(hollow_.handle(), start, kBytes));
            case End::kUnmap:
                return must(table_.vmm_unmap(hollow_.handle(), start, kBytes));
        }
    }

    const End end_;
    Hollow hollow_{{.runs_at_once = false}};
    const yoke_backend &table_ = hollow_.table();
    Ordering ordering_;
    void *streams_[3] = {}, *events_[4] = {};
    uint64_t address_ = 0, chunk_ = 0;
};

struct Planted {
    const char *name, *race, *twin;
};
constexpr Planted kPlanted[] = {
    {"nobody waits", "uA end", "uA rA1 W1 end"},
    {"an event that nobody waits for", "uA rA1 end", "uA rA1 W1 end"},
    {"a record before the use", "rA1 uA W1 end", "uA rA1 W1 end"},
    {"a wait of somebody else", "uA rA1 wC1 end", "uA rA1 wC1 W1 end"},
    {"the work of one stream of two", "uA uC rA1 W1 end", "uA uC rA1 rC2 W1 W2 end"},
    {"a use behind the record", "uA rA1 uA/ W1 end", "uA uA/ rA1 W1 end"},
    {"a chain in the wrong order", "uA rA1 rC2 wC1 W2 end", "uA rA1 wC1 rC2 W2 end"},
    {"an event that was recorded again", "uA rA1 rC1 W1 end", "uA rA1 rC2 W1 end"},
    {"a wait before the record", "uA W1 rA1 end", "uA rA1 W1 end"},
    {"an event that is not reached", "uA rA1 q1 end", "uA rA1 run q1 end"},
    {"a wait of the host for another stream", "uA uC sC end", "uA uC sC sA end"},
};

TEST(PlantedRaces, AreFoundAndTheirTwinsAreNot)
{
    int found = 0;
    for (const auto end : {Stage::End::kOtherStream, Stage::End::kDefaultStream, Stage::End::kFree,
                           Stage::End::kUnmap})
        for (const Planted &each : kPlanted) {
            EXPECT_GE(Stage(end).play(each.race), 1u)
                << each.name << " (end " << static_cast<int>(end) << ")";
            EXPECT_EQ(Stage(end).play(each.twin), 0u)
                << each.name << " (end " << static_cast<int>(end) << ")";
            ++found;
        }
    EXPECT_GE(found, 40);
}

}  // namespace
}  // namespace yoke
