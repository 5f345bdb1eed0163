// The control bits of ACS in a bridge's PCI configuration, well-formed or not.
#include "core/doctor/facts.h"

#include <gtest/gtest.h>

#include <string>

namespace yoke::doctor {
namespace {

// Returns a configuration of 4096 bytes with a capability at 0x100, and perhaps another one.
std::string configuration(unsigned first, size_t at = 0, unsigned second = 0, unsigned control = 0)
{
    std::string bytes(4096, '\0');
    const auto put = [&](size_t place, unsigned word) {
        for (size_t i = 0; i < 4; ++i) bytes[place + i] = static_cast<char>(word >> 8 * i);
    };
    put(0x100, first);
    if (at) put(at, second);
    if (at) put(at + 4, control << 16 | 0x5f);
    return bytes;
}

constexpr unsigned kErrors = 0x0001 | 1u << 16, kAcs = 0x000d | 1u << 16;

TEST(DoctorRoutes, AcsIsFoundWhereverItStandsInTheList)
{
    EXPECT_EQ(acs_control(configuration(kErrors | 0x148u << 20, 0x148, kAcs, 0x1d)), 0x1d);
    EXPECT_EQ(acs_control(configuration(kErrors | 0xff8u << 20, 0xff8, kAcs, 0x8001)), 0x8001);
    std::string short_one = configuration(kAcs).substr(0, 0x108);
    short_one[0x106] = 0x0c;
    EXPECT_EQ(acs_control(short_one), 0x0c);
}

TEST(DoctorRoutes, ABridgeWithoutAcsSendsNothingElsewhere)
{
    EXPECT_EQ(acs_control(configuration(0)), 0);
    EXPECT_EQ(acs_control(configuration(kErrors)), 0);
    EXPECT_EQ(acs_control(std::string(4096, '\xff')), 0);
}

TEST(DoctorRoutes, WhatAUserMayNotReadIsNotKnown)
{
    EXPECT_EQ(acs_control(""), -1);
    EXPECT_EQ(acs_control(std::string(64, '\0')), -1);
    EXPECT_EQ(acs_control(std::string(256, '\0')), -1);
}

TEST(DoctorRoutes, AListThatLeadsNowhereEnds)
{
    EXPECT_EQ(acs_control(configuration(kErrors | 0x100u << 20)), 0);
    EXPECT_EQ(acs_control(configuration(kErrors | 0x040u << 20)), 0);
    EXPECT_EQ(acs_control(configuration(kErrors | 0xffcu << 20)), 0);
    EXPECT_EQ(acs_control(configuration(kErrors | 0xffcu << 20).substr(0, 0x110)), 0);
    EXPECT_EQ(acs_control(configuration(kErrors | 0x200u << 20, 0x200, kErrors | 0x100u << 20)), 0);
}

}  // namespace
}  // namespace yoke::doctor
