#include "core/base/foreign.h"

#include "core/base/config.h"
#include "core/base/text.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

namespace yoke {

namespace {

// Setting made from a variable's text: no value if the text does not concern the setting, or the allowed values.
struct Reading {
    std::optional<std::string> value;
    const char *allowed = nullptr;
};
using Reader = Reading (*)(std::string_view text);

Reading as_it_is(std::string_view text)
{
    return {std::string(text)};
}

// Reads Gloo's list of names; each is a whole name, not a prefix.
Reading whole_names(std::string_view text)
{
    return {"=" + std::string(text)};
}

// Reads a switch of PyTorch that any value but "0" turns on.
Reading any_value(std::string_view text)
{
    return {text == "0" ? "0" : "1"};
}

// Reads PyTorch's list of key:value and keeps the keys with the same meaning in Yoke. A value may be a list in
// brackets.
Reading allocator_settings(std::string_view text)
{
    constexpr std::string_view kShared[] = {"expandable_segments", "garbage_collection_threshold"};
    std::string kept;
    while (!text.empty()) {
        size_t end = 0;
        for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end)
            depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
        std::string_view item = text.substr(0, end);
        item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
        if (std::ranges::find(kShared, item.substr(0, item.find(':'))) != std::end(kShared))
            add_part(kept, item, ",");
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (kept.empty()) return {};
    return {kept};
}

Reading denied_flag(std::string_view text)
{
    if (text == "0" || text == "1") return {text == "1" ? "0" : "1"};
    return {std::nullopt, "0 or 1"};
}

Reading debug_level(std::string_view text)
{
    std::string word(text);
    for (char &c : word) c = static_cast<char>(toupper(static_cast<unsigned char>(c)));
    if (word == "VERSION" || word == "NONE") return {};
    if (word == "WARN") return {"warn"};
    if (word == "INFO" || word == "ABORT") return {"info"};
    if (word == "TRACE") return {"debug"};
    return {std::nullopt, "VERSION, WARN, INFO, ABORT or TRACE"};
}

struct Row {
    std::string_view name;
    ForeignVariable::Effect effect;
    const char *setting;
    Reader reader;
    const char *says;

    bool is_for(std::string_view variable) const
    {
        const bool is_start = name.back() == '*';
        return is_start ? variable.substr(0, name.size() - 1) == name.substr(0, name.size() - 1)
                        : variable == name;
    }
};

constexpr Row kRows[] = {
#define YOKE_SETS(name, setting, reader, says) \
    {name, ForeignVariable::kSets, setting, reader, says},
#define YOKE_ALWAYS(name, says) {name, ForeignVariable::kAlways, nullptr, nullptr, says},
#define YOKE_PASSED(name, says) {name, ForeignVariable::kPassed, nullptr, nullptr, says},
#define YOKE_NOTHING(name, says) {name, ForeignVariable::kNothing, nullptr, nullptr, says},
#include "core/base/foreign.def"
#undef YOKE_SETS
#undef YOKE_ALWAYS
#undef YOKE_PASSED
#undef YOKE_NOTHING
};

constexpr std::string_view kFamilies[] = {"NCCL_", "GLOO_", "TORCH_NCCL_"};

const Row *row_of(std::string_view variable)
{
    for (const Row &row : kRows)
        if (row.is_for(variable)) return &row;
    return nullptr;
}

// Describes the present effect of a variable, which depends on the origin of the setting.
void tell_setting(const Row &row, ForeignVariable &out)
{
    const Reading reading = row.reader(out.text);
    const std::string decides = config_origin(row.setting);
    out.setting = row.setting;
    if (reading.allowed) {
        out.effect = ForeignVariable::kUnreadable;
        out.says = std::string("the value must be ") + reading.allowed;
    } else if (!reading.value) {
        out.effect = ForeignVariable::kNothing;
    } else {
        out.setting += "=" + *reading.value;
        if (decides == out.name) return;
        out.effect = ForeignVariable::kOverruled;
        out.says = decides + " has priority. Meaning of this variable: " + row.says;
    }
}

ForeignVariable translated(std::string_view name, std::string_view text)
{
    ForeignVariable out{std::string(name), std::string(text), ForeignVariable::kUnknown, "", ""};
    const Row *row = row_of(name);
    if (!row) {
        out.says = name.starts_with("NCCL_")
                       ? "unknown variable: NCCL may read it, but Yoke does not"
                       : "unknown variable: it has no effect";
        return out;
    }
    out.effect = row->effect;
    out.says = row->says;
    if (row->setting) tell_setting(*row, out);
    return out;
}

bool is_foreign(std::string_view name)
{
    const auto begins = [&](std::string_view family) {
        return name.substr(0, family.size()) == family;
    };
    return std::ranges::any_of(kFamilies, begins) || row_of(name);
}

}  // namespace

std::optional<ForeignSetting> foreign_setting(std::string_view setting)
{
    for (const Row &row : kRows) {
        if (!row.setting || row.setting != setting) continue;
        const char *text = getenv(row.name.data());
        if (!text || !*text) continue;
        Reading reading = row.reader(text);
        if (reading.allowed || reading.value)
            return ForeignSetting{row.name.data(), text, reading.allowed,
                                  std::move(reading.value).value_or("")};
    }
    return std::nullopt;
}

const char *effect_name(ForeignVariable::Effect effect)
{
    static const char *const names[] = {"nothing", "sets",       "overruled", "always",
                                        "unknown", "unreadable", "passed"};
    return names[effect];
}

std::vector<ForeignVariable> foreign_variables()
{
    std::map<std::string_view, std::string_view> set;
    for (char **entry = environ; *entry; ++entry) {
        const std::string_view text(*entry);
        const size_t equals = text.find('=');
        if (equals == text.npos || equals + 1 == text.size()) continue;  // empty: not set
        if (is_foreign(text.substr(0, equals)))
            set.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    std::vector<ForeignVariable> all;
    for (const auto &[name, text] : set) all.push_back(translated(name, text));
    return all;
}

}  // namespace yoke
