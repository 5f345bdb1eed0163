// Cards by UUID and by address: partitioned cards, and messages if no card has either.
#include "core/select/choice.h"
#include "tests/core/expect_error.h"
#include "tests/core/machines.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using namespace test;
using Cards = std::vector<int>;

Card instance(const Card &whole, int number, const char *uuid)
{
    Card made = whole;
    made.info.kind = YOKE_CARD_MIG;
    made.info.index = number;
    made.info.parent = whole.info.index;
    made.info.mig = -1;
    made.info.visible = number == 1 ? 0 : -1;
    put(made.info.uuid, uuid);
    return made;
}

Machine partitioned(int instances)
{
    Card whole = card(0, "NVIDIA A100-SXM4-40GB", 80, 40, 108);
    whole.info.mig = 1;
    whole.info.visible = -1;
    std::vector<Card> cards{whole};
    for (int i = 1; i <= instances; ++i)
        cards.push_back(
            instance(whole, i, ("MIG-" + std::string(8, static_cast<char>('0' + i))).c_str()));
    return machine_of(cards);
}

TEST(DeviceNaming, TheAddressOfAPartitionedCardMeansItsInstance)
{
    EXPECT_EQ(choice_for(partitioned(1), "pci:0000:10:00.0").chosen, Cards{1});
    EXPECT_EQ(choice_for(partitioned(1), "uuid:MIG-1").chosen, Cards{1});
}

TEST(DeviceNaming, OfSeveralInstancesAtOneAddressAUuidIsAskedFor)
{
    expect_error(
        YOKE_E_VALUE,
        {"'pci:0000:10:00.0'", "2 MIG instances", "MIG-11111111", "MIG-22222222", "uuid:MIG-"},
        [] { choice_for(partitioned(2), "pci:0000:10:00.0"); });
}

TEST(DeviceNaming, AUuidMayBeWrittenWithoutItsPrefix)
{
    const Machine machine = machine_of({card(0, "a", 90, 80, 100), card(1, "b", 90, 80, 100)});
    EXPECT_EQ(choice_for(machine, "uuid:AAAAAAAA").chosen, Cards{0});
    EXPECT_EQ(choice_for(machine, "uuid:bb").chosen, Cards{1});
    EXPECT_EQ(choice_for(machine, "uuid:GPU-b").chosen, Cards{1});
}

TEST(DeviceNaming, AUuidThatNoCardHasIsAnsweredWithThoseThatThereAre)
{
    const Machine machine = machine_of({card(0, "a", 90, 80, 100), card(1, "b", 90, 80, 100)});
    for (const char *spec : {"uuid:GPU-bbbbbbcb-0000", "uuid:bbbbbbcb-0000"}) {
        const std::string problem = choice_for(machine, spec).problem;
        EXPECT_NE(problem.find("a (GPU-aaaaaaaa-0000)"), std::string::npos) << problem;
        EXPECT_NE(problem.find("did you mean 'uuid:GPU-bbbbbbbb-0000'?"), std::string::npos)
            << problem;
    }
    const std::string far = choice_for(machine, "uuid:GPU-12345678-9999").problem;
    EXPECT_EQ(far.find("did you mean"), std::string::npos) << far;
}

TEST(DeviceNaming, AnAddressThatNoCardHasIsAnsweredWithThoseThatThereAre)
{
    const Machine machine = machine_of({card(0, "a", 90, 80, 100), card(1, "b", 90, 80, 100)});
    const std::string problem = choice_for(machine, "pci:0000:12:00.0").problem;
    EXPECT_NE(problem.find("a (0000:10:00.0)"), std::string::npos) << problem;
    EXPECT_NE(problem.find("did you mean 'pci:0000:1"), std::string::npos) << problem;
}

}  // namespace
}  // namespace yoke
