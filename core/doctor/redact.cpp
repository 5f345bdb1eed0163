#include "core/doctor/redact.h"

#include "core/doctor/root.h"

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

// The length of a UUID at the start, 0 if there is none: groups of 8, 4, 4, 4 and 12 digits.
size_t uuid_length(std::string_view text)
{
    size_t at = 0;
    for (const size_t group : {8, 4, 4, 4, 12}) {
        if (at && (at >= text.size() || text[at++] != '-')) return 0;
        if (at > text.size() || hex_digits(text.substr(at)) != group) return 0;
        at += group;
    }
    return at;
}

// Folders that are laid out alike everywhere: a user called nvidia or cuda does not rename what lies in them.
bool is_fixed(std::string_view path)
{
    constexpr std::string_view kFolders[] = {"/proc/", "/sys/", "/dev/", "/etc/",   "/usr/",
                                             "/var/",  "/run/", "/lib/", "/lib64/", "/yoke/"};
    return std::any_of(std::begin(kFolders), std::end(kFolders), [&](std::string_view folder) {
        return path.substr(0, folder.size()) == folder;
    });
}

bool ends_path(char c)
{
    return isspace(static_cast<unsigned char>(c)) || strchr(":=,;'\"", c);
}

bool begins_path(const std::string &text, size_t at)
{
    return text[at] == '/' && (at == 0 || ends_path(text[at - 1]));
}

}  // namespace

void Redactor::add_user(const std::string &user)
{
    if (user.size() <= 2 || user == "root" || placeholders_.count(user)) return;
    numbered("user", user);
    names_.push_back(user);
}

Redactor::Redactor(const Machine &machine, const std::string &host,
                   const std::vector<std::string> &users)
{
    for (const Card &card : machine.cards) {
        const std::string uuid = card.info.uuid;
        if (!uuid.empty()) numbered(uuid.substr(0, uuid.find('-')), uuid);
    }
    if (host.size() > 2 && host != "localhost") {
        numbered("host", host);
        names_.push_back(host);
    }
    for (const Card &card : machine.cards)
        for (const yoke_card_process &process : card.processes) {
            const std::string name = process.name;
            add_user(process.user);
            if (name.size() > 2 && !placeholders_.count(name)) {
                numbered("process", name);
                processes_.push_back(name);
            }
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

// "GPU-8932f937-…", "MIG-…", a bare UUID, and the beginning of one as CUDA_VISIBLE_DEVICES takes it.
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

size_t Redactor::match_name(std::string_view rest, Scope scope, std::string &placeholder)
{
    const auto is_here = [&](const std::string &name) {
        return rest.substr(0, name.size()) == name &&
               (rest.size() == name.size() || !is_word(rest[name.size()]));
    };
    for (const auto *list : {&names_, &processes_}) {
        if (list == &processes_ && scope != Scope::kAll) break;
        for (const std::string &name : *list)
            if (is_here(name)) {
                placeholder = placeholders_[name];
                return name.size();
            }
    }
    return 0;
}

size_t Redactor::match(std::string_view rest, Scope scope, std::string &placeholder)
{
    if (scope != Scope::kNumbers)
        if (const size_t length = match_name(rest, scope, placeholder)) return length;
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

std::string Redactor::replace(const std::string &text, Scope scope)
{
    std::string out;
    bool fixed = false;  // within a path that is the same on every machine
    for (size_t at = 0; at < text.size();) {
        std::string placeholder;
        if (begins_path(text, at)) fixed = is_fixed(std::string_view(text).substr(at));
        if (ends_path(text[at])) fixed = false;
        const bool starts = at == 0 || !is_word(text[at - 1]) || text[at] == '/';
        const size_t length = starts ? match(std::string_view(text).substr(at),
                                             fixed ? Scope::kNumbers : scope, placeholder)
                                     : 0;
        out += length ? placeholder : text.substr(at, 1);
        at += length ? length : 1;
    }
    return out;
}

std::string Redactor::operator()(const std::string &text)
{
    return replace(text, Scope::kAll);
}

std::string Redactor::patterns(const std::string &text)
{
    return replace(text, Scope::kNames);
}

std::string Redactor::numbers(const std::string &text)
{
    return replace(text, Scope::kNumbers);
}

Redactor redactor_of(const Machine &machine, Root &root)
{
    std::vector<std::string> users;
    for (const char *name : {"USER", "LOGNAME", "SUDO_USER"})
        if (const char *user = getenv(name)) users.push_back(user);
    return Redactor(machine, root.line("/proc/sys/kernel/hostname"), users);
}

std::string redacted_file(Redactor &redactor, const std::string &path, const std::string &text)
{
    const auto is_in = [&](std::initializer_list<const char *> places) {
        return std::any_of(places.begin(), places.end(), [&](const char *place) {
            return path.compare(0, strlen(place), place) == 0;
        });
    };
    const bool of_process = is_in({"/proc/"}) && isdigit(static_cast<unsigned char>(path[6]));
    if (of_process || is_in({"/dev/kmsg", "/etc/passwd", "/proc/sys/kernel/hostname"}))
        return redactor(text);
    // Paths alone may name somebody there.
    if (is_in({"/proc/self/", "/etc/ld.so.conf.d/"})) return redactor.patterns(text);
    return redactor.numbers(text);
}

}  // namespace yoke::doctor
