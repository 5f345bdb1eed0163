// The PCI bus, enclosures, networks and paths, read from small trees.
#include "core/machine/network.h"
#include "core/machine/snapshot.h"
#include "core/machine/sysfs.h"
#include "core/machine/topology.h"
#include "tests/core/tree.h"

#include <cmath>

namespace yoke {
namespace {

using test::Tree;
using Addresses = std::vector<std::string>;

class Bus : public Tree {};

TEST_F(Bus, GraphicsCardsAndAcceleratorsAreFoundAndNothingElse)
{
    device("pci0000:00/0000:00:02.0", "8086", "9a49", "030000");
    device("pci0000:00/0000:00:1f.0", "8086", "a082", "060100");
    device("pci0000:60/0000:60:01.0/0000:61:00.0", "10de", "2335", "030200");
    device("pci0000:60/0000:60:02.0/0000:62:00.0", "1002", "740f", "120000");
    device("pci0000:60/0000:60:03.0/0000:63:00.0", "1a03", "2000", "030000");
    device("pci0000:60/0000:60:01.0/0000:61:00.1", "10de", "22ba", "040300");  // sound device
    const std::vector<Card> cards = read_pci_cards(root);
    ASSERT_EQ(cards.size(), 4u);
    EXPECT_STREQ(cards[0].info.vendor, "intel");
    EXPECT_EQ(cards[0].info.kind, YOKE_CARD_INTEGRATED);
    EXPECT_STREQ(cards[1].info.vendor, "nvidia");
    EXPECT_STREQ(cards[1].info.pci, "0000:61:00.0");
    EXPECT_EQ(cards[1].info.pci_id, 0x10de2335);
    EXPECT_EQ(cards[1].info.kind, YOKE_CARD_GPU);
    EXPECT_EQ(cards[1].bridges, (Addresses{"0000:60:01.0"}));
    EXPECT_STREQ(cards[2].info.vendor, "amd");
    EXPECT_STREQ(cards[3].info.vendor, "1a03");
    EXPECT_EQ(read_pci_cards(root, "0000:61:00.0").size(), 1u);
    EXPECT_EQ(read_pci_cards(root, "0000:99:00.0").size(), 0u);
}

TEST_F(Bus, ACardTellsItsDriverNodeLinkAndMonitor)
{
    const std::string card =
        device("pci0000:60/0000:60:01.0/0000:61:00.0", "10de", "2335", "030200");
    bind(card, "nvidia");
    write(card + "/numa_node", "1\n");
    write(card + "/current_link_speed", "8.0 GT/s PCIe\n");
    write(card + "/max_link_speed", "32.0 GT/s PCIe\n");
    write(card + "/current_link_width", "4\n");
    write(card + "/max_link_width", "16\n");
    write(card + "/power/runtime_status", "active\n");
    write(card + "/drm/card0/card0-DP-1/status", "disconnected\n");
    write(card + "/drm/card0/card0-DP-2/status", "connected\n");
    const yoke_card_info info = read_pci_cards(root).at(0).info;
    EXPECT_STREQ(info.driver, "nvidia");
    EXPECT_EQ(info.numa_node, 1);
    EXPECT_EQ(info.link_generation, 3);
    EXPECT_EQ(info.link_generation_max, 5);
    EXPECT_EQ(info.link_width, 4);
    EXPECT_EQ(info.link_width_max, 16);
    EXPECT_EQ(info.display, 1);
    EXPECT_EQ(info.asleep, 0);
    EXPECT_EQ(info.memory_total, -1);
    EXPECT_TRUE(std::isnan(info.power));
}

TEST_F(Bus, TheLinkOfASleepingCardIsNotAskedFor)
{
    const std::string card =
        device("pci0000:00/0000:00:01.0/0000:01:00.0", "10de", "2684", "030000");
    write(card + "/power/runtime_status", "suspended\n");
    write(card + "/current_link_speed", "16.0 GT/s PCIe\n");
    const yoke_card_info info = read_pci_cards(root).at(0).info;
    EXPECT_EQ(info.asleep, 1);
    EXPECT_EQ(info.link_generation, -1);
    EXPECT_EQ(info.present, 1);
}

TEST_F(Bus, ACardOfAnotherMakerTellsItsNameAndMemory)
{
    const std::string card =
        device("pci0000:00/0000:00:01.0/0000:03:00.0", "1002", "744c", "030000");
    bind(card, "amdgpu");
    write(card + "/product_name", "Radeon RX 7900 XTX\n");
    write(card + "/mem_info_vram_total", "25753026560\n");
    write(card + "/mem_info_vram_used", "1000000\n");
    const yoke_card_info info = read_pci_cards(root).at(0).info;
    EXPECT_STREQ(info.name, "Radeon RX 7900 XTX");
    EXPECT_EQ(info.memory_total, 25753026560);
    EXPECT_EQ(info.memory_free, 25752026560);
}

TEST_F(Bus, ARemovableBridgeMakesItsCardsExternal)
{
    device("pci0000:00/0000:00:07.0/0000:20:00.0/0000:21:01.0/0000:22:00.0", "10de", "2684",
           "030000");
    device("pci0000:00/0000:00:01.0/0000:01:00.0", "10de", "2204", "030000");
    write("/sys/devices/pci0000:00/0000:00:07.0/0000:20:00.0/removable", "removable\n");
    link("/sys/bus/pci/devices/0000:20:00.0",
         "../../../devices/pci0000:00/0000:00:07.0/0000:20:00.0");
    const std::string dock = "/sys/devices/pci0000:00/0000:00:0d.2/domain0/0-0/0-1";
    write(dock + "/vendor_name", "Razer\n");
    write(dock + "/device_name", "Core X\n");
    write(dock + "/generation", "3\n");
    write(dock + "/authorized", "1\n");
    link("/sys/bus/thunderbolt/devices/0-1",
         "../../../devices/pci0000:00/0000:00:0d.2/domain0/0-0/0-1");
    link("/sys/bus/thunderbolt/devices/0-0",
         "../../../devices/pci0000:00/0000:00:0d.2/domain0/0-0");
    std::vector<Card> cards = read_pci_cards(root);
    read_enclosures(root, cards);
    ASSERT_EQ(cards.size(), 2u);
    EXPECT_EQ(cards[0].info.is_egpu, 0);
    EXPECT_STREQ(cards[0].info.enclosure, "");
    EXPECT_EQ(cards[1].info.is_egpu, 1);
    EXPECT_STREQ(cards[1].info.enclosure, "Razer Core X");
    EXPECT_EQ(cards[1].info.enclosure_rate, 40e9);
}

TEST_F(Bus, ACardBehindTheBridgesOfAThunderboltControllerIsExternalToo)
{
    const std::string port = "pci0000:00/0000:00:1c.0/0000:04:00.0/";
    device(port + "0000:05:01.0/0000:08:00.0/0000:09:01.0/0000:0a:00.0", "10de", "2684", "030000");
    const std::string controller = port + "0000:05:00.0/0000:06:00.0/domain0/0-0/0-1";
    write("/sys/devices/" + controller + "/vendor_name", "Sonnet\n");
    write("/sys/devices/" + controller + "/device_name", "Breakaway\n");
    write("/sys/devices/" + controller + "/rx_speed", "20.0 Gb/s\n");
    write("/sys/devices/" + controller + "/rx_lanes", "2\n");
    link("/sys/bus/thunderbolt/devices/0-1", "../../../devices/" + controller);
    std::vector<Card> cards = read_pci_cards(root);
    read_enclosures(root, cards);
    EXPECT_EQ(cards.at(0).info.is_egpu, 1);
    EXPECT_STREQ(cards[0].info.enclosure, "Sonnet Breakaway");
    EXPECT_EQ(cards[0].info.enclosure_rate, 40e9);
    // An unauthorized dock reaches no card.
    write("/sys/devices/" + controller + "/authorized", "0\n");
    cards = read_pci_cards(root);
    read_enclosures(root, cards);
    EXPECT_EQ(cards.at(0).info.is_egpu, 0);
}

TEST_F(Bus, NetworksTellTheirPortsRateAndState)
{
    const std::string card = "pci0000:60/0000:60:01.0/0000:61:00.0/0000:62:01.0/0000:64:00.0";
    device(card, "15b3", "1021", "020700");
    const std::string network = "/sys/devices/" + card + "/infiniband/mlx5_0";
    write(network + "/ports/1/state", "4: ACTIVE\n");
    write(network + "/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    write(network + "/ports/1/link_layer", "InfiniBand\n");
    write(network + "/ports/2/state", "1: DOWN\n");
    write("/sys/devices/" + card + "/numa_node", "1\n");
    link(network + "/device", "../../../0000:64:00.0");
    link("/sys/class/infiniband/mlx5_0", "../../devices/" + card + "/infiniband/mlx5_0");
    const std::vector<NetworkCard> networks = read_networks(root);
    ASSERT_EQ(networks.size(), 2u);
    const yoke_network_card info = networks[0].info;
    EXPECT_STREQ(info.name, "mlx5_0");
    EXPECT_STREQ(info.pci, "0000:64:00.0");
    EXPECT_STREQ(info.layer, "InfiniBand");
    EXPECT_STREQ(info.state, "ACTIVE");
    EXPECT_EQ(info.active, 1);
    EXPECT_EQ(info.port, 1);
    EXPECT_EQ(info.rate, 400e9);
    EXPECT_EQ(info.numa_node, 1);
    EXPECT_EQ(networks[0].bridges, (Addresses{"0000:62:01.0", "0000:61:00.0", "0000:60:01.0"}));
    EXPECT_EQ(networks[1].info.active, 0);
    EXPECT_TRUE(std::isnan(networks[1].info.rate));
}

TEST(Address, EveryWayToWriteOneIsUnderstood)
{
    EXPECT_EQ(pci_address("00000000:65:00.0"), "0000:65:00.0");
    EXPECT_EQ(pci_address("0000:E1:1F.3"), "0000:e1:1f.3");
    EXPECT_EQ(pci_address("00010000:01:00.0"), "10000:01:00.0");
    EXPECT_EQ(pci_address("pci0000:60"), "");
    EXPECT_EQ(pci_address("0000:65:00.0x"), "");
    EXPECT_EQ(pci_address(""), "");
}

TEST(Path, IsToldFromWhatTwoDevicesShareOnTheirWayUp)
{
    struct Case {
        int32_t path;
        Addresses a, b;
        const char *address_a, *address_b;
        int32_t node_a = 0, node_b = 0;
    };
    // Ports of switches: down, up, then the root port.
    for (const Case &c : {
             Case{YOKE_PATH_BOARD, {}, {}, "0000:61:00.0", "0000:61:00.1"},
             Case{YOKE_PATH_SWITCH,
                  {"0000:62:00.0", "0000:61:00.0", "0000:60:01.0"},
                  {"0000:62:01.0", "0000:61:00.0", "0000:60:01.0"},
                  "0000:63:00.0",
                  "0000:64:00.0"},
             Case{YOKE_PATH_SWITCHES,
                  {"0000:72:00.0", "0000:71:00.0", "0000:62:00.0", "0000:61:00.0", "0000:60:01.0"},
                  {"0000:82:00.0", "0000:81:00.0", "0000:62:01.0", "0000:61:00.0", "0000:60:01.0"},
                  "0000:73:00.0",
                  "0000:83:00.0"},
             Case{YOKE_PATH_BRIDGE,
                  {"0000:60:01.0"},
                  {"0000:60:02.0"},
                  "0000:61:00.0",
                  "0000:62:00.0"},
             Case{YOKE_PATH_BRIDGE, {}, {}, "0000:00:05.0", "0000:00:06.0"},
             Case{YOKE_PATH_NODE,
                  {"0000:60:01.0"},
                  {"0000:80:01.0"},
                  "0000:61:00.0",
                  "0000:81:00.0"},
             Case{YOKE_PATH_SYSTEM,
                  {"0000:60:01.0"},
                  {"0000:80:01.0"},
                  "0000:61:00.0",
                  "0000:81:00.0",
                  0,
                  1},
             Case{YOKE_PATH_SYSTEM, {}, {}, "", "0000:81:00.0", -1, -1},
         })
        EXPECT_EQ(path_between(c.a, c.address_a, c.node_a, c.b, c.address_b, c.node_b), c.path)
            << c.address_a << " " << c.address_b;
}

TEST(Path, TheMatrixHasARowForEachCardAndAColumnForEachNetwork)
{
    Machine machine;
    for (const char *address : {"0000:61:00.0", "0000:81:00.0"}) {
        Card card = unknown_card();
        card.info.kind = YOKE_CARD_GPU;
        card.info.numa_node = address[5] == '8';
        put(card.info.pci, address);
        machine.cards.push_back(card);
    }
    NetworkCard network{};
    put(network.info.name, "mlx5_0");
    put(network.info.pci, "0000:61:00.1");
    network.info.port = 1;
    machine.networks.push_back(network);
    link_by_bus(machine);
    machine.links[1].nvlinks = 18;
    label_link(machine.links[1]);
    EXPECT_EQ(topology_text(machine).substr(0, 116),
              "        GPU0    GPU1    mlx5_0  NUMA\n"
              "GPU0    X       NV18    PIX     0\n"
              "GPU1    SYS     X       SYS     1\n"
              "\nX = itself");
    EXPECT_EQ(topology_text(Machine{}), "no GPU\n");
}

}  // namespace
}  // namespace yoke
