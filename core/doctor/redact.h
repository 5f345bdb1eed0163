// redact.h: a report for strangers: placeholders replace names and numbers of a machine.
//
// A name has the same placeholder everywhere: GPU-0 is the card's UUID in the evidence, the recorded files and the
// scenario. So a redacted report can still be read, and replayed.
#pragma once

#include "core/machine/inventory.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace yoke::doctor {

class Redactor {
public:
    // Takes names of users and processes from the machine; `host` is the machine's own name, `users` are further
    // names.
    Redactor(const Machine &machine, const std::string &host,
             const std::vector<std::string> &users = {});

    // Redacts every known name, and texts in the form of a UUID, a container's id or a home folder. Redacts names of
    // one or two letters only at places where only a name can be, because prose is full of such words.
    std::string operator()(const std::string &text);
    // Redacts a field with only a name, even a short name.
    std::string name(const std::string &text);
    // Redacts all except names of processes, because these are ordinary words in a command or a path.
    std::string patterns(const std::string &text);
    // Redacts only UUIDs, ids and home folders: for texts whose words have a meaning, "ID=ubuntu".
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

    std::map<std::string, std::string> placeholders_;  // by text met so far
    std::map<std::string, int> counts_;
    std::vector<std::string> names_, processes_;  // the longest first
};

class RecordedRoot;
// Returns a redactor for the machine, with its name, and the users named by the environment.
Redactor redactor_of(const Machine &machine, RecordedRoot &root);

// Returns the redacted text of a recorded file. Names stay where the checks and the inventory read them as words.
std::string redacted_file(Redactor &redactor, const std::string &path, const std::string &text);

}  // namespace yoke::doctor
