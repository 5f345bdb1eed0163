// proc.h: what the kernel tells of processes and their containers, and of the machine's kind.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>

namespace yoke {

// Of the place: the container's engine and the virtual machine's maker.
void read_place(const Root &root, Machine &machine);

// The host's memory, as that of a card.
void put_host_memory(const Root &root, yoke_card_info &info);

// Whose processes they are: names, users, containers; who cannot be seen from here, and how much memory that leaves.
void read_processes(const Root &root, Machine &machine);

// The container's id in a text of /proc/PID/cgroup ("4f5e...", an LXC container's name); "" for none.
std::string container_of(std::string_view cgroups);

// The name in an /etc/passwd for a user's number, else the number.
std::string user_name(std::string_view passwd, int64_t uid);

}  // namespace yoke
