// Displayed name of a process: its title or the kernel's name, without arguments, and safe to print.
#include "core/machine/proc.h"
#include "tests/core/tree.h"

namespace yoke {
namespace {

class Names : public test::Tree {
protected:
    static yoke_card_process process()
    {
        yoke_card_process made{};
        made.pid = 41;
        return made;
    }
};

TEST_F(Names, ANameHoldsNoArguments)
{
    struct {
        std::string cmdline, comm, name;
    } const cases[] = {
        {"/opt/chrome/chrome --key=HUNTER2 --dir=/a/HUNTER2", "chrome", "chrome"},
        {"prof --api-key=HUNTER2", "prof", "prof"},
        {"prof\t--api-key=HUNTER2", "python3", "python3"},
        {"postgres: writer HUNTER2", "postgres", "postgres"},
        {"a-program-with-a-long-name --key=HUNTER2", "a-program-with-",
         "a-program-with-a-long-name"},
        {"/opt/My App/run", "run", "run"},
        {"/opt/My App/run --key=HUNTER2", "run", "run"},
        {"prof --api-key=HUNTER2", "", "prof"},
        {std::string("/opt/My App/run\0--key=HUNTER2", 29), "run", "run"},
        {std::string("/usr/bin/python3\0train.py", 25), "other", "python3"},
    };
    for (const auto &c : cases) {
        write("/proc/41/cmdline", c.cmdline);
        write("/proc/41/comm", c.comm + "\n");
        Machine machine;
        machine.cards = {unknown_card()};
        machine.cards[0].processes = {process()};
        read_processes(root, machine);
        EXPECT_EQ(machine.cards[0].processes[0].name, c.name) << c.cmdline;
    }
}

TEST_F(Names, WhatAProcessIsCalledCanBeShown)
{
    write("/etc/passwd", "al\033[2Jice:x:7:7:::\n");
    write("/proc/41/cmdline", "/bin/a\033]0;b\x07\nc\xff");
    write("/proc/41/comm", "x\033[31m\xc3\xa9\xc2\x9b\n");
    write("/proc/41/status", "Uid:\t7\n");
    Machine machine;
    machine.cards = {unknown_card()};
    machine.cards[0].processes = {process()};
    read_processes(root, machine);
    EXPECT_STREQ(machine.cards[0].processes[0].name, "x?[31m\xc3\xa9??");
    EXPECT_STREQ(machine.cards[0].processes[0].user, "al?[2Jice");
}

TEST(Printable, WhatIsNoCharacterIsAQuestionMark)
{
    struct {
        const char *text, *shown;
    } const cases[] = {
        {"plain, \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "plain, \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\a\b\t\n\r\033\x7f", "???????"},
        {"\x80 \xff \xc0\xaf \xc3", "? ? ?? ?"},
        {"\xc2\x85 \xe0\x80\xaf \xed\xa0\x80 \xf4\x90\x80\x80", "?? ??? ??? ????"},
        {"\xe2\x82 \xf0\x9f\x98", "?? ???"},
    };
    for (const auto &c : cases) EXPECT_EQ(printable(c.text), c.shown);
}

}  // namespace
}  // namespace yoke
