#include "core/doctor/redact.h"

#include <algorithm>
#include <cctype>

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

}  // namespace

Redactor::Redactor(const Machine &machine, const std::string &host)
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
            const std::string user = process.user, name = process.name;
            if (user.size() > 2 && user != "root" && !placeholders_.count(user)) {
                numbered("user", user);
                names_.push_back(user);
            }
            if (name.size() > 2 && !placeholders_.count(name)) {
                numbered("process", name);
                processes_.push_back(name);
            }
        }
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

size_t Redactor::match(std::string_view rest, bool all, std::string &placeholder)
{
    const auto is_here = [&](const std::string &name) {
        return rest.substr(0, name.size()) == name &&
               (rest.size() == name.size() || !is_word(rest[name.size()]));
    };
    for (const auto *list : {&names_, &processes_}) {
        if (list == &processes_ && !all) break;
        for (const std::string &name : *list)
            if (is_here(name)) {
                placeholder = placeholders_[name];
                return name.size();
            }
    }
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

std::string Redactor::replace(const std::string &text, bool all)
{
    std::string out;
    for (size_t at = 0; at < text.size();) {
        std::string placeholder;
        const bool starts = at == 0 || !is_word(text[at - 1]) || text[at] == '/';
        const size_t length =
            starts ? match(std::string_view(text).substr(at), all, placeholder) : 0;
        out += length ? placeholder : text.substr(at, 1);
        at += length ? length : 1;
    }
    return out;
}

std::string Redactor::operator()(const std::string &text)
{
    return replace(text, true);
}

std::string Redactor::patterns(const std::string &text)
{
    return replace(text, false);
}

}  // namespace yoke::doctor
