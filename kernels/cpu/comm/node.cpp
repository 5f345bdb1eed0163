#include "kernels/cpu/comm/node.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "kernels/cpu/available.h"

namespace yoke::cpu::comm {

// Reads the random number drawn by the kernel at boot. Returns false if there is none.
static bool read_boot_id(char (&text)[37])
{
    const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    if (!file || read(file.get(), text, 36) != 36) return false;
    text[36] = 0;
    return true;
}

static void read_processors(uint64_t (&processors)[16])
{
    cpu_set_t set;
    static_assert(sizeof set == sizeof processors);
    if (sched_getaffinity(0, sizeof set, &set) == 0) memcpy(processors, &set, sizeof set);
}

size_t processors_of(const Place *places, const std::vector<int> &ranks)
{
    size_t count = 0;
    for (size_t word = 0; word < std::size(places->processors); ++word) {
        uint64_t any = 0;
        for (int rank : ranks) any |= places[rank].processors[word];
        count += static_cast<size_t>(std::popcount(any));
    }
    return count;
}

Place this_place()
{
    Place place = {};
    char boot[37];
    struct stat space;
    if (read_boot_id(boot) && stat("/proc/self/ns/net", &space) == 0) {
        snprintf(place.node, sizeof place.node, "%s %llu:%llu", boot,
                 static_cast<unsigned long long>(space.st_dev),
                 static_cast<unsigned long long>(space.st_ino));
    } else {  // without /proc each process is a separate node
        uint64_t drawn[2] = {};
        getrandom(drawn, sizeof drawn, 0);
        snprintf(place.node, sizeof place.node, "%d %016llx%016llx", static_cast<int>(getpid()),
                 static_cast<unsigned long long>(drawn[0]),
                 static_cast<unsigned long long>(drawn[1]));
    }
    const size_t length = strlen(place.node);
    if (const char *name = g_host->config("YOKE_COMM_TEST_NODE"))
        snprintf(place.node + length, sizeof place.node - length, " %s", name);
    const char *asked = g_host->config("YOKE_COMM_SHM");
    read_processors(place.processors);
    place.free_mib = static_cast<int32_t>(available_memory() >> 20);
    place.shares_memory = !(asked && !strcmp(asked, "0")) && can_share();
    return place;
}

Layout layout_of(const Place *places, int size)
{
    Layout layout;
    for (int rank = 0; rank < size; ++rank) {
        size_t node = 0;
        while (node < layout.nodes.size() &&
               strncmp(places[layout.nodes[node][0]].node, places[rank].node, sizeof(Place::node)))
            ++node;
        if (node == layout.nodes.size()) layout.nodes.emplace_back();
        layout.node_of.push_back(static_cast<int>(node));
        layout.index_of.push_back(static_cast<int>(layout.nodes[node].size()));
        layout.nodes[node].push_back(rank);
    }
    return layout;
}

size_t Layout::fewest() const
{
    size_t least = nodes[0].size();
    for (const auto &node : nodes) least = std::min(least, node.size());
    return least;
}

size_t Layout::most() const
{
    size_t most = 0;
    for (const auto &node : nodes) most = std::max(most, node.size());
    return most;
}

}  // namespace yoke::cpu::comm
