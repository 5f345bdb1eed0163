// Wrong use of any call: the fake NVML library must answer as NVML does.
#include "tests/fakes/edge/library.h"

using namespace yoke::fake_nvml;

namespace {

// Does any call, with words as arguments. The number of used words depends on the call.
using Word = uintptr_t;
int with_words(const Machine &machine, const std::string &name, Word a = 0, Word b = 0, Word c = 0,
               Word d = 0, Word e = 0)
{
    return machine.call(name, a, b, c, d, e);
}

bool begins(const std::string &name, const char *part)
{
    return name.rfind(part, 0) == 0;
}

bool takes_a_device(const std::string &name)
{
    return begins(name, "nvmlDevice") && !begins(name, "nvmlDeviceGetHandle") &&
           !begins(name, "nvmlDeviceGetCount");
}

bool always_answers(const std::string &name)
{
    return begins(name, "nvmlInit") || name == "nvmlErrorString";
}

TEST(Misuse, before_the_start_every_call_says_that_the_library_is_not_initialized)
{
    const Machine machine("8xH100-nvlink");
    const std::set<std::string> names = exported(machine);
    EXPECT_GT(names.size(), 110u);
    for (const std::string &name : names)
        if (!takes_a_device(name) && !always_answers(name)) {
            EXPECT_EQ(with_words(machine, name), kUninitialized) << name;
        }
}

TEST(Misuse, a_handle_of_before_the_end_serves_no_more_after_it)
{
    Machine machine("8xH100-nvlink");
    ASSERT_EQ(machine.start(), 0);
    Handle *const device = machine.device(0);
    ASSERT_EQ(machine.call("nvmlShutdown"), 0);
    machine.started = 0;
    for (const std::string &name : exported(machine))
        if (takes_a_device(name)) {
            EXPECT_EQ(with_words(machine, name, reinterpret_cast<Word>(device)), kUninitialized)
                << name;
        }
}

TEST(Misuse, a_device_that_is_null_or_unknown_is_an_invalid_argument)
{
    Machine machine("8xH100-nvlink");
    ASSERT_EQ(machine.start(), 0);
    alignas(64) static char memory[8192] = "";
    const Word place = reinterpret_cast<Word>(memory);
    const Word inside = reinterpret_cast<Word>(machine.device(0)) + 1;
    for (const std::string &name : exported(machine))
        if (takes_a_device(name)) {
            for (const Word device : {Word{0}, place, inside})
                EXPECT_EQ(with_words(machine, name, device, place, place, place, place),
                          kInvalidArgument)
                    << name;
        }
}

TEST(Misuse, no_place_for_the_answer_is_an_invalid_argument)
{
    Machine machine("8xH100-nvlink");
    ASSERT_EQ(machine.start(), 0);
    const Word device = reinterpret_cast<Word>(machine.device(0));
    for (const std::string &name : exported(machine))
        if (takes_a_device(name)) {
            EXPECT_EQ(with_words(machine, name, device), kInvalidArgument) << name;
        } else if (!always_answers(name) && name != "nvmlShutdown") {
            EXPECT_EQ(with_words(machine, name), kInvalidArgument) << name;
        }
}

TEST(Misuse, each_start_needs_its_end_and_one_more_is_refused)
{
    const Machine machine("8xH100-nvlink");
    EXPECT_EQ(machine.call("nvmlShutdown"), kUninitialized);
    EXPECT_EQ(machine.call("nvmlInit_v2"), 0);
    EXPECT_EQ(machine.call("nvmlInit"), 0);
    EXPECT_EQ(machine.call("nvmlInitWithFlags", 1u), 0);
    uint count = 0;
    for (int left = 3; left > 0; --left) {
        EXPECT_EQ(machine.call("nvmlDeviceGetCount_v2", &count), 0);
        EXPECT_EQ(machine.call("nvmlShutdown"), 0);
    }
    EXPECT_EQ(machine.call("nvmlDeviceGetCount_v2", &count), kUninitialized);
    EXPECT_EQ(machine.call("nvmlShutdown"), kUninitialized);
    EXPECT_EQ(machine.call("nvmlInitWithFlags", 64u), kInvalidArgument);
}

TEST(Misuse, text_that_does_not_fit_is_not_cut)
{
    Machine machine("8xH100-nvlink");
    ASSERT_EQ(machine.start(), 0);
    Handle *const device = machine.device(0);
    char text[96] = "";
    const std::string name = "NVIDIA H100 80GB HBM3";
    const auto length = static_cast<uint>(name.size());
    EXPECT_EQ(machine.call("nvmlDeviceGetName", device, &text[0], length), kInsufficientSize);
    EXPECT_EQ(machine.call("nvmlDeviceGetName", device, &text[0], length + 1), 0);
    EXPECT_EQ(text, name);
}

TEST(Misuse, numbers_of_things_that_are_not_there_are_refused)
{
    Machine machine("8xH100-nvlink");
    ASSERT_EQ(machine.start(), 0);
    Handle *const device = machine.device(7);
    Handle *other = nullptr;
    uint told = 0;
    int state = 0;
    EXPECT_EQ(machine.call("nvmlDeviceGetHandleByIndex_v2", 8u, &other), kInvalidArgument);
    EXPECT_EQ(machine.call("nvmlDeviceGetHandleByUUID", "GPU-0", &other), kNotFound);
    EXPECT_EQ(machine.call("nvmlDeviceGetHandleByPciBusId_v2", "0000:02:00.0", &other), kNotFound);
    EXPECT_EQ(machine.call("nvmlDeviceGetHandleByPciBusId_v2", "nonsense", &other),
              kInvalidArgument);
    EXPECT_EQ(machine.call("nvmlDeviceGetClockInfo", device, 4, &told), kInvalidArgument);
    EXPECT_EQ(machine.call("nvmlDeviceGetTemperature", device, 1, &told), kInvalidArgument);
    EXPECT_EQ(machine.call("nvmlDeviceGetNvLinkState", device, 18u, &state), kInvalidArgument);
    EXPECT_EQ(machine.call("nvmlDeviceGetFanSpeed", device, &told), kNotSupported);
    EXPECT_EQ(machine.call("nvmlDeviceGetTopologyCommonAncestor", device, device, &state),
              kInvalidArgument);
}

}  // namespace
