// A written dump is read back, and other texts are refused: core/comm/dump.cpp, dump_read.cpp.
#include "tests/core/comm/made_dumps.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

namespace yoke::test {
namespace {

TEST(Dump, IsReadAsItWasWritten)
{
    const Dump one = Made(1, 2)
                         .in(kReduce, 3)
                         .send(0, kDone, 4)
                         .recv(0, kQueued, 5)
                         .fail("why \x1b[31m", 3)
                         .meet("split", 2);
    EXPECT_EQ(dump_text(one), dump_text(read_dump(dump_text(one))));
    EXPECT_EQ(one.records[0].line, 3);
    EXPECT_EQ(one.records[2].call.op, YOKE_COMM_RECV);
    EXPECT_EQ(one.records[2].call.signature.root, 1);
    EXPECT_EQ(one.cause->text, "why \x1b[31m");
    Dump odd = one;
    odd.records[0].file = "\xff.py";  // invalid UTF-8, unfit for JSON
    EXPECT_NO_THROW((void)read_dump(dump_text(odd)));
}

std::string with(std::string text, const std::string &part, const std::string &other)
{
    const size_t place = text.find(part);
    EXPECT_NE(place, std::string::npos) << part;
    return text.replace(place, part.size(), other);
}

TEST(Dump, WhatIsNoneIsRefusedByPlace)
{
    const std::string good = dump_text(Made(0, 2).in(kReduce, 3).send(1, kDone, 4));
    const auto refused = [&](const char *part, const char *other, const char *told) {
        expect_error(YOKE_E_VALUE, {"not a dump of a group", told},
                     [&] { read_dump(with(good, part, other)); });
    };
    refused("\"format\":1", "\"format\":2", "'format'");
    refused("\"format\":1", "\"format\":\"1\"", "'format'");
    refused("\"group\":\"0x7\"", "\"group\":\"7\"", "'group'");
    refused("\"group\":\"0x7\"", "\"group\":\"0x12345678901234567\"", "'group'");
    refused("\"rank\":0", "\"rank\":2", "'rank'");
    refused("\"rank\":0", "\"rank\":-1", "'rank'");
    refused("\"rank\":0", "\"rank\":0.5", "'rank'");
    refused("\"calls\":1", "\"calls\":18446744073709551615", "'calls'");
    refused("\"now\":1000.0", "\"now\":1e999", "out_of_range");
    refused("\"now\":1000.0", "\"now\":-1", "'now'");
    refused("\"now\":1000.0", "\"now\":null", "'now'");
    refused("\"ranks\":[", "\"ranks\":[7,", "'ranks[0]'");
    refused("\"sent\":[0,1]", "\"sent\":[0]", "'sent'");
    refused("\"sent\":[0,1]", "\"sent\":[0,-1]", "'sent'");
    refused("\"all_reduce\"", "\"all_to_none\"", "'records[0].op'");
    refused("\"float32\"", "\"float33\"", "'records[0].dtype'");
    refused("\"sum\"", "\"mean\"", "'records[0].reduction'");
    refused("\"running\"", "\"walking\"", "'records[0].state'");
    refused("\"peer\":1", "\"peer\":2", "'records[1].peer'");
    refused("\"peer\":1", "\"peer\":null", "'records[1].peer'");
    refused("\"sequence\":1", "\"sequence\":0", "'records[0].sequence'");
    refused("\"records\": [", "\"records\": [[],", "'records[0]'");
}

TEST(Dump, HostileTextsAreRefused)
{
    for (const std::string &text :
         {std::string(), std::string("7"), std::string("[]"), std::string("{}"),
          std::string("\0", 1), std::string(1000000, '['), "{\"a\":" + std::string(1000000, '['),
          std::string("{\"format\":1"), "{\"format\":" + std::string(100000, '9') + "}",
          std::string("{\"a\xff\":1}")})
        expect_error(YOKE_E_VALUE, {"not a dump of a group"}, [&] { read_dump(text); });
}

}  // namespace
}  // namespace yoke::test
