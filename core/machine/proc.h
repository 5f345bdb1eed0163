// proc.h: the kernel's facts about processes and their containers, and about the kind of machine.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>

namespace yoke {

// Reads the container's engine and the virtual machine's maker.
void read_place(const Root &root, Machine &machine);

// Sets the card's total, free and used memory to the host's memory.
void put_host_memory(const Root &root, yoke_card_info &info);

// Reads names, users and containers of the processes, and counts hidden processes with their memory.
void read_processes(const Root &root, Machine &machine);

// Returns the container's id in a text of /proc/PID/cgroup ("4f5e...", or an LXC container's name); "" for none.
std::string container_of(std::string_view cgroups);

// Returns the name for a user's number in the text of an /etc/passwd, else the number.
std::string user_name(std::string_view passwd, int64_t uid);

}  // namespace yoke
