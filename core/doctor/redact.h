// redact.h: a report that can be shown to strangers: names and numbers of one machine become placeholders.
//
// The same name is the same placeholder wherever it stands: GPU-0 is the card's UUID in the evidence, the recorded files
// and the scenario, so that what is redacted can still be read, and replayed.
#pragma once

#include "core/device/inventory.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::doctor {

class Redactor {
public:
    // Names of users and processes come from the machine; `host` is its own name.
    Redactor(const Machine &machine, const std::string &host);

    // Every name that is known, and what looks like a UUID, a container's id or a home folder.
    std::string operator()(const std::string &text);
    // The same without the names of processes, which are words like others in a command.
    std::string patterns(const std::string &text);

private:
    std::string replace(const std::string &text, bool all);
    size_t match(std::string_view rest, bool all, std::string &placeholder);
    size_t match_uuid(std::string_view rest, std::string &placeholder);
    const std::string &numbered(const std::string &kind, const std::string &name);

    std::map<std::string, std::string> placeholders_;  // of everything met so far
    std::map<std::string, int> counts_;
    std::vector<std::string> names_, processes_;  // the longest first
};

}  // namespace yoke::doctor
