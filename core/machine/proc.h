// proc.h: the kernel's facts about processes and their containers, and about the kind of machine.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>

namespace yoke {

// Reads the container's engine and the virtual machine's maker.
void read_place(const Root &root, Machine &machine);

// Puts the host's memory in as the card's memory.
void put_host_memory(const Root &root, yoke_card_info &info);

// Reads names, users and containers of the processes, and counts hidden processes with their memory.
void read_processes(const Root &root, Machine &machine);

// The container's id in a text of /proc/PID/cgroup ("4f5e...", an LXC container's name); "" for none.
std::string container_of(std::string_view cgroups);

// The name in an /etc/passwd for a user's number, else the number.
std::string user_name(std::string_view passwd, int64_t uid);

}  // namespace yoke
