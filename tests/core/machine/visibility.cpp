// Cards that CUDA would show: every rule of CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, as tables.
#include "core/machine/visibility.h"

#include "core/base/log.h"
#include "tests/core/fresh_process.h"

#include <gtest/gtest.h>

#include <cmath>

namespace yoke {
namespace {

using Indexes = std::vector<int>;

Card card(const char *uuid, const char *pci, int major = 9, int multiprocessors = 132)
{
    Card made = unknown_card();
    made.info.kind = YOKE_CARD_GPU;
    made.info.present = 1;
    put(made.info.vendor, "nvidia");
    put(made.info.driver, "nvidia");
    put(made.info.uuid, uuid);
    put(made.info.pci, pci);
    made.info.cc_major = major;
    made.info.cc_minor = 0;
    made.info.multiprocessors = multiprocessors;
    return made;
}

Card instance(const char *uuid, const char *pci)
{
    Card made = card(uuid, pci);
    made.info.kind = YOKE_CARD_MIG;
    return made;
}

// Four cards alike: a, b, c, c2.
Machine four()
{
    Machine machine;
    machine.cards = {card("GPU-aa11", "0000:01:00.0"), card("GPU-bb22", "0000:02:00.0"),
                     card("GPU-cc33", "0000:03:00.0"), card("GPU-cc44", "0000:04:00.0")};
    return machine;
}

struct Vector {
    const char *value;  // nullptr: not set
    Indexes cards;
    const char *problem = "";    // a part of the text; "" without a problem
    const char *corrected = "";  // the whole text
};

void hold(const Machine &machine, const Vector &vector, const char *order = "PCI_BUS_ID")
{
    const std::optional<std::string> value =
        vector.value ? std::optional<std::string>(vector.value) : std::nullopt;
    const Visible visible = visible_cards(machine, value, std::string(order));
    const std::string shown = vector.value ? vector.value : "(unset)";
    EXPECT_EQ(visible.cards, vector.cards) << shown;
    EXPECT_EQ(visible.corrected, vector.corrected) << shown;
    if (*vector.problem)
        EXPECT_NE(visible.problem.find(vector.problem), std::string::npos)
            << shown << ": " << visible.problem;
    else
        EXPECT_EQ(visible.problem, "") << shown;
}

TEST(Visibility, NumbersAreReadAsCudaReadsThem)
{
    for (const Vector &vector : {
             Vector{nullptr, {0, 1, 2, 3}},
             Vector{"", {}},
             Vector{"0", {0}},
             Vector{"2,0", {2, 0}},
             Vector{" 1, 2", {1, 2}},
             Vector{"+1", {1}},
             Vector{"0,2,-1,1", {0, 2}, "entry '-1' is below 0", "0,2,1"},
             Vector{"0,9,1", {0}, "entry '9' is beyond the last card, 3", "0,1"},
             Vector{"9", {}, "entry '9' is beyond the last card, 3"},
             Vector{"99999999999999999999", {}, "beyond the last card"},
             Vector{"-1", {}},
             Vector{"none", {}},
             Vector{"NoDevFiles", {}},
             Vector{"None1", {}, "entry 'None1' is neither a number"},
             Vector{"1,none", {1}, "entry 'none' is neither a number", "1"},
             Vector{"1,,2", {1}, "entry '' is empty", "1,2"},
             Vector{"1,", {1}, "entry '' is empty", "1"},
         })
        hold(four(), vector);
}

TEST(Visibility, WhatStandsBehindANumberIsDroppedAndTold)
{
    const struct {
        const char *value;
        Indexes cards;
        const char *dropped, *corrected;
    } kVectors[] = {
        {"0-2", {0}, "CUDA reads the entry '0-2' as 0 and drops '-2'", "0,1,2"},
        {"1-9", {1}, "drops '-9'", "1,2,3"},
        {"0 1", {0}, "CUDA reads the entry '0 1' as 0 and drops '1'", "0,1"},
        {"0;1", {0}, "CUDA reads the entry '0;1' as 0 and drops ';1'", "0,1"},
        {"3:1", {3}, "drops ':1'", "3,1"},
        {"1gpu2", {1}, "CUDA reads the entry '1gpu2' as 1 and drops 'gpu2'", "1"},
        {"1gpu2,2ampere", {1, 2}, "drops 'gpu2'; CUDA reads the entry '2ampere' as 2", "1,2"},
        {"2,0-1", {2, 0}, "drops '-1'", "2,0,1"},
        {"0x2", {0}, "drops 'x2'", "0"},
        {"1.5", {1}, "drops '.5'", "1"},
        {" 1 , 2 ", {1, 2}, "", ""},
        {"+1", {1}, "", ""},
        {"GPU-aa11", {0}, "", ""},
    };
    for (const auto &vector : kVectors) {
        const Visible visible = visible_cards(four(), vector.value, std::string("PCI_BUS_ID"));
        EXPECT_EQ(visible.cards, vector.cards) << vector.value;
        EXPECT_EQ(visible.problem, "") << vector.value;
        EXPECT_EQ(visible.corrected, vector.corrected) << vector.value;
        EXPECT_NE(visible.dropped.find(vector.dropped), std::string::npos) << visible.dropped;
        EXPECT_EQ(visible.dropped.empty(), !*vector.dropped) << visible.dropped;
    }
}

TEST(Visibility, AListInQuotesOrBracketsIsCorrectedToItsNumbers)
{
    hold(four(), {"\"0,1\"", {}, "entry '\"0' is neither a number", "0,1"});
    hold(four(), {"[2 3]", {}, "entry '[2 3]' is neither a number", "2,3"});
    hold(four(), {"cuda:1", {}, "entry 'cuda:1' is neither a number", "1"});
    hold(four(),
         {"GPU-aa11;GPU-bb22", {}, "is not the beginning of any UUID", "GPU-aa11,GPU-bb22"});
}

TEST(Visibility, ACardNamedTwiceHidesAll)
{
    for (const Vector &vector : {
             Vector{"0,0", {}, "entry '0' names a card for the second time", "0"},
             Vector{"1,2,1", {}, "entry '1' names a card for the second time", "1,2"},
             Vector{"GPU-aa,GPU-aa", {}, "second time", "GPU-aa11"},
             Vector{"GPU-aa,GPU-aa11", {}, "second time", "GPU-aa11"},
             // Entries behind the end of the list are not read.
             Vector{"0,9,0", {0}, "beyond the last card", "0"},
         })
        hold(four(), vector);
}

TEST(Visibility, UuidsMayBeShortenedWhileTheyNameOneCard)
{
    for (const Vector &vector : {
             Vector{"GPU-aa11", {0}},
             Vector{"GPU-b,GPU-a", {1, 0}},
             Vector{"GPU-cc3", {2}},
             Vector{"GPU-c", {}, "is the beginning of more than one UUID"},
             Vector{"GPU-a,GPU-c,GPU-b",
                    {0},
                    "entry 'GPU-c' is the beginning of more than one",
                    "GPU-aa11,GPU-bb22"},
             Vector{"GPU-d", {}, "is not the beginning of any UUID"},
             Vector{"GPU-AA11", {}, "is not the beginning of any UUID"},
             Vector{"GPU-", {}, "more than one"},
         })
        hold(four(), vector);
}

TEST(Visibility, KindsOfEntriesDoNotMix)
{
    Machine machine = four();
    machine.cards.erase(machine.cards.begin() + 3);  // leaves a single GPU-c
    for (const Vector &vector : {
             Vector{"GPU-c,1", {2}, "entry '1' does not begin with GPU-", "GPU-cc33,GPU-bb22"},
             Vector{"1,GPU-c", {1}, "entry 'GPU-c' is a UUID among numbers", "GPU-bb22,GPU-cc33"},
             Vector{"GPU-c, GPU-a", {2}, "entry ' GPU-a' does not begin", "GPU-cc33,GPU-aa11"},
             Vector{" GPU-c", {}, "entry ' GPU-c' is neither a number", "GPU-cc33"},
             Vector{"GPU-c,MIG-1", {2}, "entry 'MIG-1' does not begin with GPU-", "GPU-cc33"},
         })
        hold(machine, vector);
}

// Card 0 in two instances (1, 2); card 3 whole; card 4 prepared for instances, without any.
Machine partitioned()
{
    Machine machine;
    machine.cards = {card("GPU-aa", "0000:01:00.0"), instance("MIG-11", "0000:01:00.0"),
                     instance("MIG-22", "0000:01:00.0"), card("GPU-bb", "0000:02:00.0"),
                     card("GPU-cc", "0000:03:00.0")};
    for (const size_t whole : {size_t{0}, size_t{4}}) machine.cards[whole].info.mig = 1;
    machine.cards[0].info.mig_instances = 2;
    machine.cards[4].info.mig_instances = 0;
    return machine;
}

TEST(Visibility, CudaShowsOneMigInstanceAndNothingBesideIt)
{
    for (const Vector &vector : {
             Vector{nullptr, {1}, "one MIG instance and no other card: MIG-11"},
             Vector{"0", {1}},
             Vector{"1", {3}},
             Vector{"1,0", {1}, "one MIG instance", "1"},
             Vector{"2", {}, "beyond the last card, 1"},  // a card without instances does not count
             Vector{"GPU-aa", {1}},
             Vector{"MIG-22", {2}},
             Vector{"MIG-2", {2}},
             Vector{"MIG-", {}, "more than one UUID"},
             Vector{"MIG-22,MIG-11", {2}, "one MIG instance and no other card: MIG-22", "MIG-22"},
             Vector{"MIG-22,MIG-22", {}, "second time", "MIG-22"},
             Vector{"MIG-33", {}, "is not the beginning of any UUID"},
             Vector{"MIG-22,GPU-bb", {2}, "does not begin with MIG-", "GPU-bb"},
             Vector{"GPU-cc", {}, "is not the beginning of any UUID"},
         })
        hold(partitioned(), vector);
}

// A slow old card before a fast new one on the bus.
Machine mixed()
{
    Machine machine;
    machine.cards = {card("GPU-old", "0000:01:00.0", 7, 40),
                     card("GPU-new", "0000:02:00.0", 8, 108),
                     card("GPU-mid", "0000:03:00.0", 8, 58)};
    for (Card &each : machine.cards) each.info.sm_clock_max = 1.5e9;
    return machine;
}

TEST(Visibility, WithoutAnOrderTheFastestCardIsTheFirst)
{
    for (const char *order : {"FASTEST_FIRST", "fastest", ""}) {
        hold(mixed(), Vector{nullptr, {1, 2, 0}}, order);
        hold(mixed(), Vector{"0", {1}}, order);
    }
    hold(mixed(), Vector{nullptr, {0, 1, 2}}, "PCI_BUS_ID");
    hold(mixed(), Vector{"0", {0}}, "PCI_BUS_ID");
    EXPECT_EQ(visible_cards(mixed(), std::nullopt, std::nullopt).cards, (Indexes{1, 2, 0}));
    Machine clocked = mixed();
    clocked.cards[2].info.sm_clock_max = 4e9;
    EXPECT_EQ(visible_cards(clocked, std::nullopt, std::nullopt).cards, (Indexes{2, 1, 0}));
}

TEST(Visibility, EqualCardsStayInTheOrderOfTheirAddresses)
{
    EXPECT_EQ(visible_cards(four(), std::nullopt, std::nullopt).cards, (Indexes{0, 1, 2, 3}));
}

TEST(Visibility, NumbersOfCardsThatDifferNeedAnOrder)
{
    const auto mixed_order = [](const Machine &machine, const char *value, const char *order) {
        return visible_cards(machine, std::string(value),
                             order ? std::optional<std::string>(order) : std::nullopt)
            .mixed_order;
    };
    EXPECT_TRUE(mixed_order(mixed(), "0", nullptr));
    EXPECT_TRUE(mixed_order(mixed(), "1,0", "FASTEST_FIRST"));
    EXPECT_FALSE(mixed_order(mixed(), "0", "PCI_BUS_ID"));
    EXPECT_FALSE(mixed_order(mixed(), "GPU-old", nullptr));
    EXPECT_FALSE(mixed_order(mixed(), "", nullptr));
    EXPECT_FALSE(mixed_order(four(), "0", nullptr));
}

TEST(Visibility, CardsThatCudaCannotReachAreNotCounted)
{
    Machine machine = four();
    put(machine.cards[0].info.driver, "nouveau");
    machine.cards[1].info.present = 0;
    put(machine.cards[2].info.vendor, "amd");
    hold(machine, Vector{nullptr, {3}});
    hold(machine, Vector{"0", {3}});
    hold(machine, Vector{"GPU-aa", {}, "entry 'GPU-aa' is not the beginning of any UUID"});
    Machine undriven = four();
    put(undriven.cards[0].info.driver, "");
    reject(undriven.cards[0], {Reason::kNoDriver, "no driver holds the card"});
    hold(undriven, Vector{nullptr, {1, 2, 3}});
}

TEST(Visibility, ACardThatNvmlDoesNotShowCountsOnlyWhileItSleeps)
{
    Machine machine = four();
    machine.nvml.version = "13.580.82.07";
    for (Card &each : machine.cards) each.info.nvml_index = 0;
    machine.cards[1].info.nvml_index = machine.cards[2].info.nvml_index = -1;
    machine.cards[2].info.asleep = 1;
    hold(machine, Vector{nullptr, {0, 2, 3}});
    machine.nvml.failure.kind = NvmlFailure::Kind::kHung;
    hold(machine, Vector{nullptr, {0, 1, 2, 3}});
}

TEST(Visibility, AnInstanceIsAlsoNamedByItsCardAndNumbers)
{
    const std::string card_a = "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
                      card_b = "GPU-6c89852c-d268-c3f3-1b07-005d5ae1dc3f";
    Machine machine;
    machine.cards = {card(card_a.c_str(), "0000:01:00.0"), instance("MIG-a", "0000:01:00.0"),
                     instance("MIG-b", "0000:01:00.0"), card(card_b.c_str(), "0000:02:00.0"),
                     instance("MIG-c", "0000:02:00.0")};
    for (const int i : {1, 2, 4}) {
        machine.cards[static_cast<size_t>(i)].gpu_instance = 6 + i;
        machine.cards[static_cast<size_t>(i)].compute_instance = 0;
    }
    const std::string a = "MIG-" + card_a, b = "MIG-" + card_b;
    hold(machine, Vector{(a + "/7/0").c_str(), {1}});
    hold(machine, Vector{(a + "/8/0").c_str(), {2}});
    hold(machine, Vector{(b + "/10/0").c_str(), {4}});
    hold(machine, Vector{(a + "/7/0,MIG-b").c_str(), {1}, "one MIG instance", "MIG-a"});
    for (const std::string &none : {a + "/9/0", a + "/7/1", b + "/7/0", a + "/70/0"})
        hold(machine, Vector{none.c_str(), {}, "names no MIG instance of this machine"});
    for (const std::string &none : {a + "/7", a + "/7/0/1", a + "/x/0", a})
        hold(machine, Vector{none.c_str(), {}, "is not the beginning of any UUID"});
    // A driver before 470 has such a UUID.
    put(machine.cards[2].info.uuid, a + "/8/0");
    machine.cards[2].gpu_instance = -1;
    hold(machine, Vector{(a + "/8/0").c_str(), {2}});
}

TEST(Visibility, WithoutCardsEveryNumberIsBeyondTheLast)
{
    hold(Machine{}, Vector{nullptr, {}});
    hold(Machine{}, Vector{"0", {}, "names a card, but there is none"});
    hold(Machine{}, Vector{"", {}});
}

std::string logged;

TEST(Visibility, WhatCudaHasReadStandsAndALaterChangeIsWarnedOfOnce)
{
    test::in_fresh_process([] {
        set_log_callback([](void *, int32_t, const char *text) { logged += text; }, nullptr,
                         nullptr);
        setenv("CUDA_VISIBLE_DEVICES", "1", 1);
        setenv("CUDA_VISIBLE_DEVICES", "0", 1);
        unsetenv("CUDA_DEVICE_ORDER");
        EXPECT_EQ(cuda_variables().visible, "0") << "before CUDA starts, the values of now count";
        keep_cuda_variables();
        warn_of_late_cuda_variables();
        EXPECT_EQ(logged, "");
        unsetenv("CUDA_VISIBLE_DEVICES");
        setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
        keep_cuda_variables();
        EXPECT_EQ(cuda_variables().visible, "0");
        EXPECT_EQ(cuda_variables().order, std::nullopt);
        warn_of_late_cuda_variables();
        EXPECT_EQ(
            logged,
            "CUDA_VISIBLE_DEVICES is not set now, but CUDA has already read the variable; the "
            "value in effect is still '0'CUDA_DEVICE_ORDER is 'PCI_BUS_ID' now, but CUDA "
            "has already read the variable; the value in effect is still not set");
        const std::string once = logged;
        warn_of_late_cuda_variables();
        EXPECT_EQ(logged, once);
    });
}

}  // namespace
}  // namespace yoke
