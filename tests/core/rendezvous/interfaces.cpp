// Networks chosen by name, nodes, and ports made from a job's name.
#include "core/rendezvous/interfaces.h"

#include "core/rendezvous/node.h"
#include "core/rendezvous/ports.h"
#include "tests/core/expect_error.h"
#include "tests/core/fresh_process.h"

#include <gtest/gtest.h>

#include <set>

namespace yoke {
namespace {

using test::expect_error;

bool accepts(const char *text, const char *name)
{
    return InterfaceChoice::read("YOKE_SOCKET_IFNAME", text).accepts(name);
}

TEST(Interfaces, NamesAreChosenAsNcclDoes)
{
    EXPECT_TRUE(accepts("ib,eth", "ib0") && accepts("ib,eth", "eth12"));
    EXPECT_FALSE(accepts("ib,eth", "lo") || accepts("ib,eth", "veth0"));
    EXPECT_TRUE(accepts("=eth0", "eth0"));
    EXPECT_FALSE(accepts("=eth0", "eth01") || accepts("=eth", "eth0"));
    EXPECT_TRUE(accepts("^docker,lo", "eth0"));
    EXPECT_FALSE(accepts("^docker,lo", "docker0") || accepts("^docker,lo", "lo"));
    EXPECT_FALSE(accepts("^=eth0", "eth0"));
    EXPECT_TRUE(accepts("^=eth0", "eth01"));
    EXPECT_TRUE(accepts("ib , eth", "eth0"));
}

TEST(Interfaces, WhatNamesNothingIsRefused)
{
    for (const char *bad : {"^", "=", "eth,,ib", "=^eth", ","})
        expect_error(YOKE_E_VALUE, {"YOKE_SOCKET_IFNAME", bad, "=eth0"},
                     [&] { InterfaceChoice::read("YOKE_SOCKET_IFNAME", bad); });
}

TEST(Interfaces, AnAbsentOneIsNamedWithThoseThatThereAre)
{
    const std::vector<Interface> all = {{"lo", {}}, {"eth0", {}}, {"lo", {}}};
    const auto choice = InterfaceChoice::read("NCCL_SOCKET_IFNAME", "ib");
    expect_error(YOKE_E_VALUE, {"NCCL_SOCKET_IFNAME is 'ib'", "are lo, eth0"},
                 [&] { choice.among(all); });
    EXPECT_EQ(InterfaceChoice::read("", "eth").among(all).front().name, "eth0");
}

TEST(Interfaces, OursComesBeforeNcclsVariable)
{
    test::in_fresh_process([] {
        setenv("NCCL_SOCKET_IFNAME", "lo", 1);
        EXPECT_TRUE(InterfaceChoice::configured().accepts("lo"));
    });
    test::in_fresh_process([] {
        setenv("NCCL_SOCKET_IFNAME", "none", 1);
        expect_error(YOKE_E_VALUE, {"NCCL_SOCKET_IFNAME", "none", "lo"},
                     [] { host_address(InterfaceChoice::configured(), AF_INET); });
    });
    test::in_fresh_process([] {
        setenv("NCCL_SOCKET_IFNAME", "none", 1);
        setenv("YOKE_SOCKET_IFNAME", "=lo", 1);
        EXPECT_EQ(host_address(InterfaceChoice::configured(), AF_INET), "127.0.0.1");
    });
    test::in_fresh_process([] {  // takes whole names only
        setenv("GLOO_SOCKET_IFNAME", "l", 1);
        expect_error(YOKE_E_VALUE, {"GLOO_SOCKET_IFNAME is 'l'", "lo"},
                     [] { host_address(InterfaceChoice::configured(), AF_INET); });
    });
}

void expect_told(const char *name, const char *text, const std::vector<std::string> &parts)
{
    test::in_fresh_process([&] {
        setenv(name, text, 1);
        std::string told;
        for (const ForeignVariable &each : comm_variables())
            if (each.name == name)
                told = std::string(effect_name(each.effect)) + " " + each.setting + " " + each.says;
        for (const std::string &part : parts) EXPECT_NE(told.find(part), std::string::npos) << told;
    });
}

TEST(Interfaces, AVariableThatNamesNoneIsToldAsUnreadable)
{
    expect_told("NCCL_SOCKET_IFNAME", "lo", {"sets YOKE_SOCKET_IFNAME=lo the network"});
    for (const char *text : {"^", "=", "a,,b", "a,^b", "=a=b", ","})
        expect_told("NCCL_SOCKET_IFNAME", text,
                    {"unreadable YOKE_SOCKET_IFNAME NCCL_SOCKET_IFNAME is '", "like eth,ib"});
    for (const char *name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"})
        expect_told(name, "nosuch0", {"unreadable YOKE_SOCKET_IFNAME ", " is 'nosuch0'", "lo"});
}

TEST(Nodes, AProcessIsOnOneMachineWithItsChildren)
{
    const HostNode node = read_node();
    EXPECT_FALSE(node.identity.empty() || node.host.empty());
    EXPECT_NE(node.identity.find("net "), std::string::npos);
    EXPECT_TRUE(test::passes_in_child([&] { EXPECT_EQ(read_node().memory, node.memory); }));
}

TEST(Ports, AJobHasSixteenOfItsOwn)
{
    const std::vector<uint16_t> ports = candidate_ports("torchrun 7f3a start 0");
    EXPECT_EQ(ports.size(), 16u);
    EXPECT_EQ(std::set(ports.begin(), ports.end()).size(), 16u);
    for (const uint16_t port : ports) EXPECT_TRUE(port >= 20000 && port < 32768) << port;
    EXPECT_EQ(candidate_ports("torchrun 7f3a start 0"), ports);
    EXPECT_NE(candidate_ports("torchrun 7f3a start 1"), ports);
}

}  // namespace
}  // namespace yoke
