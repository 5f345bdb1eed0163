// redact.h: a report that can be shown to strangers: names and numbers of one machine become placeholders.
//
// The same name is the same placeholder wherever it stands: GPU-0 is the card's UUID in the evidence, the recorded
// files and the scenario, so that what is redacted can still be read, and replayed.
#pragma once

#include "core/machine/inventory.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::doctor {

class Redactor {
public:
    // Names of users and processes come from the machine; `host` is its own name, `users` are more of them.
    Redactor(const Machine &machine, const std::string &host,
             const std::vector<std::string> &users = {});

    // Every name that is known, and what looks like a UUID, a container's id or a home folder. Names of one or two
    // letters only where nothing but a name can stand: prose is full of such words.
    std::string operator()(const std::string &text);
    // A field that holds a name and nothing else, however short that is.
    std::string name(const std::string &text);
    // The text without the names of processes, which are words like others in a command or a path.
    std::string patterns(const std::string &text);
    // UUIDs, ids and home folders alone: for text whose words have a meaning, "ID=ubuntu", that names must not change.
    std::string numbers(const std::string &text);

private:
    // kSegments: names of users and hosts, where they are a whole part of a path.
    enum class Scope { kNumbers, kSegments, kNames, kAll };
    std::string replace(std::string_view text, Scope scope);
    size_t match(std::string_view text, size_t at, Scope scope, std::string &placeholder);
    size_t match_name(std::string_view text, size_t at, Scope scope, std::string &placeholder);
    static bool is_meant(std::string_view text, size_t at, const std::string &name, Scope scope);
    size_t match_uuid(std::string_view rest, std::string &placeholder);
    void add_user(const std::string &user);
    void add_host(const std::string &host);
    void add_program(const std::string &kind, const std::string &name);
    const std::string &numbered(const std::string &kind, const std::string &name);

    std::map<std::string, std::string> placeholders_;  // of everything met so far
    std::map<std::string, int> counts_;
    std::vector<std::string> names_, processes_;  // the longest first
};

// For the machine that is looked at: with its name, and the users whom the environment names.
class RecordedRoot;
Redactor redactor_of(const Machine &machine, RecordedRoot &root);

// A file of a recording: what the checks and the inventory read as words of their own keeps its names.
std::string redacted_file(Redactor &redactor, const std::string &path, const std::string &text);

}  // namespace yoke::doctor
