// The fake CUDA driver has the cards of a scenario for devices, chosen and counted as CUDA chooses and counts.
#include <sys/wait.h>

#include "tests/fakes/cuda/machine.h"
#include "tests/fakes/cuda/visible.h"
#include "tests/fakes/edge/library.h"

using namespace yoke::fake;
using yoke::fake_nvml::Machine;

namespace {

std::string chosen(const std::vector<Choice> &cards, const std::optional<std::string> &variable)
{
    std::string text;
    for (const Chosen &one : visible(cards, variable)) {
        text += (text.empty() ? "" : " ") + std::to_string(one.card);
        if (one.instance >= 0) text += "/" + std::to_string(one.instance);
    }
    return text;
}

TEST(Visible, the_variable_is_read_as_cuda_reads_it)
{
    const std::vector<Choice> cards = {
        {"GPU-a1b2-1", {}}, {"GPU-a1b2-2", {}}, {"GPU-c0ff-3", {}}, {"GPU-d0d0-4", {}}};
    EXPECT_EQ(chosen(cards, std::nullopt), "0 1 2 3");
    const struct {
        const char *variable, *expected;
    } kCases[] = {
        {"", ""},
        {"0,2,-1,1", "0 2"},
        {"0,0", ""},
        {"0,9,1", "0"},
        {" 1, 2", "1 2"},
        {"GPU-a1b2", ""},
        {"GPU-c,1", "2"},
        {"-1", ""},
        {"none", ""},
        {"3,2,1,0", "3 2 1 0"},
        {"2x,1", "2 1"},
        {"+1", "1"},
        {"1,,2", "1"},
        {"GPU-c,GPU-d", "2 3"},
        {"GPU-c,GPU-c0", ""},
        {"gpu-C0FF-3", "2"},
        {"1,GPU-c", "1"},
        {"GPU-a1b2-2,GPU-a1b2-1", "1 0"},
        {"MIG-x", ""},
        {"0x1", "0"},
    };
    for (const auto &[variable, expected] : kCases)
        EXPECT_EQ(chosen(cards, variable), expected) << '"' << variable << '"';
}

TEST(Visible, of_partitioned_cards_a_process_gets_one_instance)
{
    const std::vector<Choice> cards = {{"GPU-a", {"MIG-1", "MIG-2"}, true}, {"GPU-b", {}, true}};
    EXPECT_EQ(chosen(cards, std::nullopt), "0/0");
    EXPECT_EQ(chosen(cards, "MIG-2"), "0/1");
    EXPECT_EQ(chosen(cards, "MIG-2,MIG-1"), "0/1");
    EXPECT_EQ(chosen(cards, "GPU-a"), "0/0");
    EXPECT_EQ(chosen(cards, "GPU-b"), "");  // cut, and into nothing
    EXPECT_EQ(chosen(cards, "0"), "0/0");
    EXPECT_EQ(chosen(cards, "MIG-3"), "");
}

#ifdef DRIVER
// Returns the devices as a fresh process sees them, one line a device. Variables are read once, so the process must
// be fresh.
std::string seen(const std::map<std::string, std::string> &variables = {})
{
    int ends[2];
    if (pipe(ends)) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        for (const auto &[name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
        void *const library = dlopen(DRIVER, RTLD_NOW);
        std::string text;
        if (const int code = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"))(0))
            text = "cuInit " + std::to_string(code) + "\n";
        const auto device =
            reinterpret_cast<decltype(&fake_machine_device)>(dlsym(library, "fake_machine_device"));
        fake_device found;
        for (int i = 0; text.rfind("cuInit", 0) != 0 && !device(i, &found); ++i) {
            char line[256];
            snprintf(line, sizeof line, "%s|%02x%02x|%04x:%02x:%02x|%d.%d|%d|%zu|%zu|%d\n",
                     found.name, found.uuid[0], found.uuid[15], static_cast<unsigned>(found.domain),
                     static_cast<unsigned>(found.bus), static_cast<unsigned>(found.slot),
                     found.major, found.minor, found.multiprocessors, found.total >> 20,
                     found.used >> 20, found.refuses);
            text += line;
        }
        const ssize_t wrote = write(ends[1], text.data(), text.size());
        _exit(wrote == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<size_t>(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status ? "the process failed" : text;
}

TEST(Cards, are_the_devices_with_all_that_the_scenario_tells)
{
    const Machine machine("A100+T4");
    EXPECT_EQ(seen(),
              "NVIDIA A100-PCIE-40GB|89f6|0000:3b:00|8.0|108|40960|593|0\n"
              "Tesla T4|5d77|0000:af:00|7.5|40|15360|449|0\n");
    EXPECT_EQ(seen({{"CUDA_VISIBLE_DEVICES", "GPU-5d5b"}}),
              "Tesla T4|5d77|0000:af:00|7.5|40|15360|449|0\n");
    EXPECT_EQ(seen({{"CUDA_VISIBLE_DEVICES", ""}}), "cuInit 100\n");
}

TEST(Cards, are_counted_the_fastest_first_or_by_their_addresses)
{
    const Machine machine("mixed-order");
    const auto names = [](const std::string &text) {
        std::string found;
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);)
            found += line.substr(0, line.find('|')) + "\n";
        return found;
    };
    EXPECT_EQ(names(seen()),
              "NVIDIA GeForce RTX 4090\nNVIDIA A100-PCIE-40GB\nNVIDIA L4\nTesla T4\n");
    EXPECT_EQ(names(seen({{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}})),
              "Tesla T4\nNVIDIA GeForce RTX 4090\nNVIDIA A100-PCIE-40GB\nNVIDIA L4\n");
}

TEST(Cards, are_instances_where_a_card_is_partitioned)
{
    const Machine machine("mig-7x");
    EXPECT_EQ(seen(), "NVIDIA A100-SXM4-40GB MIG 1g.5gb|c6a1|0000:0f:00|8.0|14|4864|3|0\n");
}

TEST(Cards, are_none_where_the_driver_does_not_serve)
{
    const struct {
        const char *scenario, *told;
    } kCases[] = {{"none", "cuInit 100\n"},          {"nouveau", "cuInit 100\n"},
                  {"amd-card", "cuInit 100\n"},      {"driver-library-mismatch", "cuInit 803\n"},
                  {"no-permission", "cuInit 100\n"}, {"mig-empty", "cuInit 100\n"}};
    for (const auto &[scenario, told] : kCases) {
        const Machine machine(scenario, Machine::kWithoutLibrary);
        EXPECT_EQ(seen(), told) << scenario;
    }
}

TEST(Cards, refuse_a_context_by_their_compute_mode)
{
    const Machine machine("exclusive-mode");
    EXPECT_EQ(seen({{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}),
              "Tesla T4|" + machine.uuid_ends(0) + "|0000:3b:00|7.5|40|15360|2755|46\n" +
                  "Tesla T4|" + machine.uuid_ends(1) + "|0000:5e:00|7.5|40|15360|449|46\n" +
                  "Tesla T4|" + machine.uuid_ends(2) + "|0000:af:00|7.5|40|15360|449|0\n");
}

TEST(Cards, of_a_chip_with_its_gpu_inside_are_devices_too)
{
    const Machine machine("jetson", Machine::kWithoutLibrary);
    EXPECT_EQ(seen(), "NVIDIA Jetson AGX Orin Developer Kit|0000|0000:00:00|8.7|16|62841|0|0\n");
}
#endif

}  // namespace
