#include "core/doctor/redact.h"

#include "core/doctor/recorded_root.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>

namespace yoke::doctor {

namespace {

bool is_word(char c)
{
    return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

size_t hex_digits(std::string_view text)
{
    size_t count = 0;
    while (count < text.size() && isxdigit(static_cast<unsigned char>(text[count]))) ++count;
    return count;
}

// Returns the length of a UUID at the start, 0 if there is none: groups of 8, 4, 4, 4 and 12 digits. systemd joins
// the groups of a pod's UUID by '_', since '-' stands for a folder there.
size_t uuid_length(std::string_view text)
{
    size_t at = 0;
    for (const size_t group : {8, 4, 4, 4, 12}) {
        if (at && (at >= text.size() || !strchr("-_", text[at++]))) return 0;
        if (at > text.size() || hex_digits(text.substr(at)) != group) return 0;
        at += group;
    }
    return at;
}

// Returns whether the path is in a folder with the same layout on all machines. There, a user called nvidia or cuda
// does not cause replacements.
bool is_fixed(std::string_view path)
{
    constexpr std::string_view kFolders[] = {"/proc/", "/sys/",   "/dev/", "/etc/",
                                             "/lib/",  "/lib64/", "/yoke/"};
    return std::any_of(std::begin(kFolders), std::end(kFolders), [&](std::string_view folder) {
        return path.substr(0, folder.size()) == folder;
    });
}

// Returns whether the path is in a folder with a partly fixed layout, where users have folders of their own:
// /var/scratch/carol.
bool is_shared(std::string_view path)
{
    return path.substr(0, 5) == "/usr/" || path.substr(0, 5) == "/var/" ||
           path.substr(0, 5) == "/run/";
}

// Returns whether every machine has the name there, or the checks look for it. Such a name does not identify a user.
bool is_usual(std::string_view name)
{
    constexpr std::string_view kNames[] = {
        "nvidia", "cuda",   "yoke",    "bin",  "sbin", "lib",  "lib64", "local", "share",
        "src",    "games",  "log",     "mail", "man",  "news", "cache", "spool", "tmp",
        "opt",    "backup", "backups", "lock", "run",  "user", "lp",    "sys"};
    return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool ends_path(char c)
{
    return isspace(static_cast<unsigned char>(c)) || strchr(":=,;'\"", c);
}

bool begins_path(std::string_view text, size_t at)
{
    return text[at] == '/' && (at == 0 || ends_path(text[at - 1]));
}

bool is_segment(std::string_view text, size_t at, size_t length)
{
    const size_t end = at + length;
    return at > 0 && text[at - 1] == '/' &&
           (end == text.size() || text[end] == '/' || ends_path(text[end]));
}

// Returns whether the place is for a name and nothing else: "process 7 (NAME, NAME) has", "Nov 22 01:02:03 NAME
// kernel: ".
bool is_place_of_name(std::string_view text, size_t at, size_t length)
{
    const std::string_view before = text.substr(0, at), after = text.substr(at + length);
    const auto ends_in = [&](std::string_view mark) {
        return before.size() >= mark.size() && before.substr(before.size() - mark.size()) == mark;
    };
    const bool listed = ends_in("(") || ends_in(", ");
    return (listed && !after.empty() && strchr(",)", after[0])) ||
           (ends_in(" ") && after.substr(0, 9) == " kernel: ");
}

// Returns whether a replacement may begin here: at a word or a path; an id also within "docker-4f5e...", a pod's id
// in "kubepods-burstable-pod5c89...".
bool is_start(std::string_view text, size_t at)
{
    if (at == 0 || text[at] == '/' || !is_word(text[at - 1])) return true;
    const std::string_view rest = text.substr(at), before = text.substr(0, at);
    if (strchr("-_", before.back())) return hex_digits(rest) == 64;
    return before.size() >= 3 && before.substr(before.size() - 3) == "pod" && uuid_length(rest);
}

// Returns whether the name is too short: such texts also occur with other meanings.
bool is_short(const std::string &name)
{
    return name.size() <= 2;
}

}  // namespace

void Redactor::add_user(const std::string &user)
{
    // A number replaces an unknown name, and identifies no user.
    const bool is_number = user.find_first_not_of("0123456789") == user.npos;
    if (is_number || user == "root" || placeholders_.count(user)) return;
    numbered("user", user);
    names_.push_back(user);
}

void Redactor::add_program(const std::string &kind, const std::string &name)
{
    if (name.empty() || placeholders_.count(name)) return;
    numbered(kind, name);
    processes_.push_back(name);
}

void Redactor::add_host(const std::string &host)
{
    if (host.empty() || host == "localhost") return;
    const std::string whole = numbered("host", host), first = host.substr(0, host.find('.'));
    names_.push_back(host);
    // The kernel's log has the first part alone.
    if (first == host || first.empty() || first == "localhost") return;
    placeholders_[first] = whole;
    names_.push_back(first);
}

Redactor::Redactor(const Machine &machine, const std::string &host,
                   const std::vector<std::string> &users)
{
    for (const Card &card : machine.cards) {
        const std::string uuid = card.info.uuid;
        if (!uuid.empty()) numbered(uuid.substr(0, uuid.find('-')), uuid);
    }
    add_host(host);
    for (const Card &card : machine.cards)
        for (const yoke_card_process &process : card.processes) {
            add_user(process.user);
            add_program("process", process.name);
            // LXC's containers have names; an id is recognized by its form.
            if (hex_digits(process.container) != 64) add_program("container", process.container);
        }
    for (const std::string &user : users) add_user(user);
    const auto longer = [](const auto &a, const auto &b) { return a.size() > b.size(); };
    std::sort(names_.begin(), names_.end(), longer);
    std::sort(processes_.begin(), processes_.end(), longer);
}

const std::string &Redactor::numbered(const std::string &kind, const std::string &name)
{
    std::string &placeholder = placeholders_[name];
    if (placeholder.empty()) placeholder = kind + "-" + std::to_string(counts_[kind]++);
    return placeholder;
}

// Matches "GPU-8932f937-…", "MIG-…", a bare UUID, and a UUID's beginning as in CUDA_VISIBLE_DEVICES. Sets the
// placeholder and returns the matched length; returns 0 if nothing matches.
size_t Redactor::match_uuid(std::string_view rest, std::string &placeholder)
{
    for (const std::string kind : {"GPU", "MIG", ""}) {
        const size_t start = kind.empty() ? 0 : kind.size() + 1;
        if (start && rest.substr(0, start) != kind + "-") continue;
        const size_t length = uuid_length(rest.substr(start));
        if (length) {
            placeholder =
                numbered(start ? kind : "UUID", std::string(rest.substr(0, start + length)));
            return start + length;
        }
        size_t end = start;
        while (start && end < rest.size() && (isxdigit(rest[end]) || rest[end] == '-')) ++end;
        for (const auto &[name, known] : placeholders_)
            if (end > start && name.compare(0, end, rest.substr(0, end)) == 0) {
                placeholder = known;
                return end;
            }
    }
    return 0;
}

// Returns whether the text at a place stands for a known name.
bool Redactor::is_meant(std::string_view text, size_t at, const std::string &name, Scope scope)
{
    const size_t end = at + name.size();
    if (text.substr(at, name.size()) != name || (end < text.size() && is_word(text[end])))
        return false;
    if (scope == Scope::kSegments) return is_segment(text, at, name.size()) && !is_usual(name);
    return !is_short(name) || is_segment(text, at, name.size()) ||
           is_place_of_name(text, at, name.size());
}

size_t Redactor::match_name(std::string_view text, size_t at, Scope scope, std::string &placeholder)
{
    for (const auto *list : {&names_, &processes_}) {
        if (list == &processes_ && scope != Scope::kAll) break;
        for (const std::string &name : *list)
            if (is_meant(text, at, name, scope)) {
                placeholder = placeholders_[name];
                return name.size();
            }
    }
    return 0;
}

size_t Redactor::match(std::string_view text, size_t at, Scope scope, std::string &placeholder)
{
    const std::string_view rest = text.substr(at);
    if (scope != Scope::kNumbers)
        if (const size_t length = match_name(text, at, scope, placeholder)) return length;
    if (const size_t length = match_uuid(rest, placeholder)) return length;
    if (hex_digits(rest) == 64) {
        placeholder = numbered("container", std::string(rest.substr(0, 64)));
        return 64;
    }
    constexpr std::string_view kHome = "/home/";
    if (rest.substr(0, kHome.size()) != kHome) return 0;
    size_t end = kHome.size();
    while (end < rest.size() && (is_word(rest[end]) || rest[end] == '.')) ++end;
    if (end == kHome.size()) return 0;
    const std::string user(rest.substr(kHome.size(), end - kHome.size()));
    placeholder = std::string(kHome) + numbered("user", user);
    return end;
}

std::string Redactor::replace(std::string_view text, Scope scope)
{
    std::string out;
    Scope here = scope;  // less is replaced within a path common to all machines
    for (size_t at = 0; at < text.size();) {
        std::string placeholder;
        const std::string_view rest = text.substr(at);
        if (begins_path(text, at) && scope != Scope::kNumbers)
            here = is_fixed(rest) ? Scope::kNumbers : is_shared(rest) ? Scope::kSegments : scope;
        if (ends_path(text[at])) here = scope;
        const size_t length = is_start(text, at) ? match(text, at, here, placeholder) : 0;
        out += length ? placeholder : std::string(rest.substr(0, 1));
        at += length ? length : 1;
    }
    return out;
}

std::string Redactor::operator()(const std::string &text)
{
    return replace(text, Scope::kAll);
}

std::string Redactor::name(const std::string &text)
{
    const auto known = placeholders_.find(text);
    return known == placeholders_.end() ? replace(text, Scope::kAll) : known->second;
}

std::string Redactor::patterns(const std::string &text)
{
    return replace(text, Scope::kNames);
}

std::string Redactor::numbers(const std::string &text)
{
    return replace(text, Scope::kNumbers);
}

Redactor redactor_of(const Machine &machine, RecordedRoot &root)
{
    std::vector<std::string> users;
    for (const char *name : {"USER", "LOGNAME", "SUDO_USER"})
        if (const char *user = getenv(name)) users.push_back(user);
    return Redactor(machine, root.line("/proc/sys/kernel/hostname"), users);
}

// Redacts lines of /etc/passwd, "NAME:x:1000:1000:::": the user's name always, and known names in the rest.
static std::string redacted_users(Redactor &redactor, const std::string &text)
{
    std::string out;
    for (const std::string &line : lines_of(text)) {
        const size_t end = std::min(line.find(':'), line.size());
        out += redactor.name(line.substr(0, end)) + redactor(line.substr(end)) + "\n";
    }
    return out;
}

// Redacts a process's name; keeps the line end or NUL.
static std::string redacted_name(Redactor &redactor, const std::string &text)
{
    const size_t end = std::min(text.find_first_of(std::string_view("\n\0", 2)), text.size());
    return redactor.name(text.substr(0, end)) + text.substr(end);
}

std::string redacted_file(Redactor &redactor, const std::string &path, const std::string &text)
{
    const auto is_in = [&](std::initializer_list<const char *> places) {
        return std::any_of(places.begin(), places.end(), [&](const char *place) {
            return path.compare(0, strlen(place), place) == 0;
        });
    };
    const bool of_process = is_in({"/proc/"}) && isdigit(static_cast<unsigned char>(path[6]));
    const std::string last = path.substr(path.rfind('/') + 1);
    if (of_process && (last == "comm" || last == "cmdline")) return redacted_name(redactor, text);
    if (is_in({"/proc/sys/kernel/hostname"})) return redacted_name(redactor, text);
    if (is_in({"/etc/passwd"})) return redacted_users(redactor, text);
    if (of_process || is_in({"/dev/kmsg"})) return redactor(text);
    // Only paths may name a person there.
    if (is_in({"/proc/self/", "/etc/ld.so.conf.d/"})) return redactor.patterns(text);
    return redactor.numbers(text);
}

}  // namespace yoke::doctor
