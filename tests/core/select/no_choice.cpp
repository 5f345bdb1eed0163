// Messages if no device fits a spec: once, in order, and without blame for healthy devices.
#include "core/select/choice.h"
#include "tests/core/expect_error.h"
#include "tests/core/machines.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using namespace test;

Machine four_of(const char *name)
{
    std::vector<Card> cards;
    for (int i = 0; i < 4; ++i) cards.push_back(card(i, name, 90, 80, 132));
    return machine_of(cards);
}

void expect_part(const std::string &text, const char *part, bool is_there = true)
{
    EXPECT_EQ(text.find(part) != std::string::npos, is_there) << "'" << part << "' in: " << text;
}

TEST(DeviceProblems, AWordThatOthersHaveForAKindMeansThatKind)
{
    for (const char *spec : {"gpu", "GPU", "gpus", "nvidia", "gpu:0", "auto:kind=gpu"})
        expect_error(YOKE_E_VALUE, {"did you mean 'cuda'?"}, [&] { parse_spec(spec); });
    expect_error(YOKE_E_VALUE, {"did you mean 'cpu'?"}, [] { parse_spec("host"); });
    expect_error(YOKE_E_VALUE, {"did you mean 'cpu'?"}, [] { parse_spec("cpuu"); });
}

TEST(DeviceProblems, AReasonThatSeveralCardsShareIsSaidOnce)
{
    const Choice none = choice_for(four_of("NVIDIA H100"), "auto:name=A100,fallback=error");
    expect_part(none.problem, "4 × NVIDIA H100 (cuda:0–3): the name does not contain 'A100'");
    Machine mixed = four_of("NVIDIA H100");
    reject(mixed.cards[1], {Reason::kNeedsReset, "it is on fire"});
    const Choice some = choice_for(mixed, "auto:min_cc=12.0,fallback=error");
    expect_part(some.problem, "3 × NVIDIA H100 (cuda:0,2,3): compute capability 9.0");
    expect_part(some.problem, "NVIDIA H100 (cuda:1): it is on fire");
    put(mixed.cards[2].info.name, "NVIDIA H200");
    const Choice unlike = choice_for(mixed, "auto:min_cc=12.0,fallback=error");
    expect_part(unlike.problem,
                "NVIDIA H100 (cuda:0), NVIDIA H200 (cuda:2), NVIDIA H100 (cuda:3): compute");
}

TEST(DeviceProblems, NumbersThatFollowEachOtherAreARange)
{
    EXPECT_EQ(ranges_text({}), "");
    EXPECT_EQ(ranges_text({7}), "7");
    EXPECT_EQ(ranges_text({3, 1, 0, 2, 7, 6}), "0–3,6,7");
}

TEST(DeviceProblems, ASetOfTwoThatIsNotThereIsDeniedOnce)
{
    const Machine machine =
        machine_of({card(0, "NVIDIA A100", 80, 80, 108), card(1, "Tesla T4", 75, 15, 40),
                    card(2, "NVIDIA H100", 90, 80, 132)});
    const Choice two = choice_for(machine, "auto:n=2,homogeneous");
    EXPECT_EQ(two.problem, "3 devices fit, but no 2 of them are alike");
    const Choice three = choice_for(machine, "auto:n=3,homogeneous");
    EXPECT_EQ(three.problem, "3 devices fit, but no 3 of them are alike, nor any two");
}

}  // namespace
}  // namespace yoke
