// tree.h: the files of a recording's root, as read by the checks and by an inventory.
#pragma once

#include "core/doctor/facts.h"

#include <map>
#include <set>
#include <string>

namespace yoke::doctor {

struct Tree {
    std::map<std::string, std::string> texts, links;
    std::set<std::string> folders;
};

// Returns the files read by the checks, and the files that an inventory reads. Collects at most 4096 files of
// together 16 MiB for the inventory.
Tree tree_of(const Facts &facts, const RecordedRoot &root);

}  // namespace yoke::doctor
