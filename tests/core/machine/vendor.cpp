// Vendors: found by name and number, and reasons for cards of vendors without a backend.
#include "core/machine/vendor.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

TEST(Vendor, IsFoundByItsNameAndByItsNumberOnTheBus)
{
    for (const Vendor *each : vendors()) {
        EXPECT_EQ(find_vendor(std::string_view(each->name())), each);
        EXPECT_EQ(find_vendor(each->id()), each);
    }
    EXPECT_EQ(find_vendor(std::string_view("1a03")), nullptr);
    EXPECT_EQ(find_vendor(int64_t{0x1a03}), nullptr);
    EXPECT_EQ(find_vendor(std::string_view()), nullptr);
}

TEST(Vendor, CardsThatNoBackendServesAreRejectedForThat)
{
    Machine machine;
    for (const char *name : {"amd", "intel", "1a03"}) {
        Card card = unknown_card();
        put(card.info.vendor, name);
        machine.cards.push_back(card);
    }
    reject_cards(Root{"/no/such/root"}, machine);
    for (const Card &card : machine.cards) {
        EXPECT_EQ(card.rejected, Reason::kNoBackend) << card.info.vendor;
        EXPECT_STREQ(check_of(card.rejected), "");
        EXPECT_FALSE(is_of_served_vendor(card.info));
        EXPECT_FALSE(is_held_by_own_driver(card.info));
    }
}

}  // namespace
}  // namespace yoke
