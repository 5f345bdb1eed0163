#include "core/select/spec.h"

#include "core/backend/registry.h"
#include "core/backend/traits.h"
#include "core/base/config.h"
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace yoke {

namespace {

constexpr const char *kForms =
    "cpu, cuda, cuda:N, uuid:GPU-…, pci:0000:65:00.0, auto, auto:KEY=VALUE,…";

std::string lower(std::string_view text)
{
    std::string low(text);
    for (char &c : low)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return low;
}

// Constraint being read, for messages.
struct Item {
    const Spec &spec;
    std::string key, value;
    bool has_value;
};

[[noreturn]] __attribute__((cold)) void refuse(const Spec &spec, const std::string &why)
{
    fail(YOKE_E_VALUE, "device spec '%s' %s", spec.text.c_str(), why.c_str());
}

// Returns the word probably meant: the kind called so in other programs, else the nearest word. By letters, "gpu" is
// nearest to "cpu", the only wrong answer.
const char *meant_kind(const std::string &word, const std::vector<const char *> &words)
{
    if (const char *kind = kind_called(lower(word)))
        for (const char *known : words)
            if (std::string_view(known) == kind) return known;
    return nearest_word(word, words);
}

[[noreturn]] __attribute__((cold)) void refuse_value(const Item &item, const std::string &allowed)
{
    refuse(item.spec, "has " + item.key + "='" + item.value + "'; " + item.key + " is " + allowed);
}

[[noreturn]] __attribute__((cold)) void refuse_word(const Item &item, const std::string &word,
                                                    const std::vector<const char *> &words)
{
    const char *meant = meant_kind(word, words);
    refuse_value(item, "one of " + joined(words) + "; '" + word + "' is none of them" +
                           (meant ? ", did you mean '" + std::string(meant) + "'?" : ""));
}

size_t word_of(const Item &item, const std::string &word, const std::vector<const char *> &words)
{
    for (size_t i = 0; i < words.size(); ++i)
        if (word == words[i]) return i;
    refuse_word(item, word, words);
}

// Returns a number with one of the units; `usual` is the most likely unit if the unit is missing.
double need_measure(const Item &item, std::span<const Unit> units, const char *usual,
                    const char *allowed)
{
    const std::optional<Measure> read = read_measure(item.value, units);
    if (!read) refuse_value(item, allowed);
    if (read->unit.empty())
        refuse(item.spec, "has " + item.key + "=" + item.value + ": " + item.value +
                              " has no unit; write " + item.key + "=" + item.value + usual);
    if (read->known) return read->number * read->known->scale;
    refuse_value(item,
                 std::string(allowed) + "; '" + read->unit + "' is not a unit" +
                     (read->meant ? ", did you mean '" + std::string(read->meant) + "'?" : ""));
}

int64_t read_bytes(const Item &item)
{
    constexpr const char *kAllowed =
        "a number with B, KB, KiB, MB, MiB, GB, GiB, TB or TiB, such as 8GiB";
    const double bytes = need_measure(item, kByteUnits, "GiB", kAllowed);
    if (bytes > 9e18) refuse_value(item, std::string(kAllowed) + ", and below 9e18 bytes");
    return std::llround(bytes);
}

double read_seconds(const Item &item)
{
    static constexpr Unit kUnits[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};
    constexpr const char *kAllowed = "a number with ms, s, m or h, such as 60s, of at most 8784h";
    const double seconds = need_measure(item, kUnits, "s", kAllowed);
    if (seconds > 8784 * 3600.) refuse_value(item, kAllowed);
    return seconds;
}

int32_t read_count(const Item &item)
{
    const int32_t count = parsed<int32_t>(item.value).value_or(0);
    if (count < 1) refuse_value(item, "the number of devices, a whole number from 1");
    return count;
}

double read_share(const Item &item)
{
    const std::optional<Measure> percent = read_measure(item.value);
    if (!percent || (!percent->unit.empty() && percent->unit != "%") || percent->number > 100)
        refuse_value(item, "the highest utilization in percent, from 0 to 100");
    return percent->number / 100;
}

int32_t read_capability(const Item &item)
{
    int32_t major = -1, minor = 0;
    const char *const end = item.value.data() + item.value.size();
    auto read = std::from_chars(item.value.data(), end, major);
    bool good = read.ec == std::errc() && major >= 0 && major < 1000;
    if (good && read.ptr != end && *read.ptr == '.') {
        const char *digits = read.ptr + 1;
        read = std::from_chars(digits, end, minor);
        good = read.ec == std::errc() && minor >= 0 && minor < 10 && *digits != '-';
    }
    if (!good || read.ptr != end)
        refuse_value(item, "a compute capability, major.minor, such as 8.0");
    return 10 * major + minor;
}

uint32_t read_excluded(const Item &item)
{
    const std::vector<const char *> words{"egpu", "display", "mig", "integrated", "busy", "leased"};
    uint32_t bits = 0;
    for (size_t start = 0; start <= item.value.size();) {
        const size_t plus = std::min(item.value.find('+', start), item.value.size());
        bits |= 1u << word_of(item, item.value.substr(start, plus - start), words);
        start = plus + 1;
    }
    return bits;
}

std::string read_kind(const Item &item)
{
    const std::vector<std::string> kinds = known_kinds();
    return kinds[word_of(item, item.value, c_strings(kinds))];
}

// Reader of a key. `wants`: whether the key needs a value.
struct Key {
    const char *name;
    bool wants;
    void (*read)(Spec &spec, const Item &item);
};
const Key kKeys[] = {
    {"n", true, [](Spec &s, const Item &i) { s.count = read_count(i); }},
    {"min_free", true, [](Spec &s, const Item &i) { s.min_free = read_bytes(i); }},
    {"min_memory", true, [](Spec &s, const Item &i) { s.min_memory = read_bytes(i); }},
    {"min_cc", true, [](Spec &s, const Item &i) { s.min_cc = read_capability(i); }},
    {"max_util", true, [](Spec &s, const Item &i) { s.max_util = read_share(i); }},
    {"name", true, [](Spec &s, const Item &i) { s.name_holds = i.value; }},
    {"same", true,
     [](Spec &s, const Item &i) {
         s.same = static_cast<Spec::Same>(1 + word_of(i, i.value, {"nvlink", "switch", "numa"}));
     }},
    {"homogeneous", false, [](Spec &s, const Item &) { s.homogeneous = true; }},
    {"exclude", true, [](Spec &s, const Item &i) { s.exclude = read_excluded(i); }},
    {"kind", true, [](Spec &s, const Item &i) { s.kind = read_kind(i); }},
    {"wait", true, [](Spec &s, const Item &i) { s.wait = read_seconds(i); }},
    {"lease", false, [](Spec &s, const Item &) { s.lease = true; }},
    {"fallback", true,
     [](Spec &s, const Item &i) {
         s.fallback =
             static_cast<Spec::Fallback>(1 + word_of(i, i.value, {"warn", "silent", "error"}));
     }},
};
constexpr size_t kKeyCount = sizeof kKeys / sizeof *kKeys;

size_t key_index(const Item &item)
{
    std::vector<const char *> names;
    for (size_t i = 0; i < kKeyCount; ++i) {
        if (item.key == kKeys[i].name) return i;
        names.push_back(kKeys[i].name);
    }
    const char *meant = nearest_word(item.key, names);
    refuse(item.spec, "has the key '" + item.key + "'" +
                          (item.has_value ? " (with value '" + item.value + "')" : "") +
                          ", which does not exist" +
                          (meant ? "; did you mean '" + std::string(meant) + "'?" : ";") +
                          " The keys are " + joined(names));
}

void read_item(Spec &spec, const std::string &text, uint32_t *seen)
{
    const size_t equals = text.find('=');
    const bool has_value = equals != std::string::npos;
    std::string key = text.substr(0, equals), value = has_value ? text.substr(equals + 1) : "";
    key.erase(key.find_last_not_of(' ') + 1);
    value.erase(0, std::min(value.find_first_not_of(' '), value.size()));
    const Item item{spec, key, value, has_value};
    const size_t i = key_index(item);
    if (*seen >> i & 1) refuse(spec, "gives " + key + " twice; give it once");
    *seen |= 1u << i;
    if (kKeys[i].wants && value.empty())
        refuse(spec, "gives " + key + " no value; write " + key + "=VALUE");
    if (!kKeys[i].wants && has_value)
        refuse(spec,
               "gives " + key + " the value '" + value + "'; it takes no value, write only " + key);
    kKeys[i].read(spec, item);
}

void check_together(const Spec &spec)
{
    if (spec.kind == kHostKind && !spec.needs_gpu_for().empty())
        refuse(spec, "contradicts itself: kind=cpu, but " + spec.needs_gpu_for() +
                         ", which no CPU can meet; leave out one of the two");
}

void read_constraints(Spec &spec, std::string_view text)
{
    uint32_t seen = 0;
    spec.is_constrained = true;
    for (const std::string &item : split_list(text)) {
        if (item.empty())
            refuse(spec, "has an empty constraint; write KEY=VALUE, such as min_free=8GiB");
        read_item(spec, item, &seen);
    }
    check_together(spec);
}

void read_index(Spec &spec, std::string_view digits)
{
    spec.index = parsed<int32_t>(digits).value_or(-1);
    if (spec.index < 0)
        refuse(spec, std::string("has no device number after its colon; use one of ") + kForms);
}

void read_prefix(Spec &spec, std::string_view text)
{
    if (text.empty())
        refuse(spec, spec.form == Spec::Form::kUuid
                         ? "has no text after its colon; write a UUID or its beginning, uuid:GPU-89"
                         : "has no text after its colon; write a PCI address, pci:0000:65:00.0");
    if (spec.form == Spec::Form::kUuid) {
        spec.prefix = lower(text);
        return;
    }
    if (text.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos)
        refuse(spec, "has no PCI address after its colon; write an address such as 0000:65:00.0");
    spec.prefix = normal_pci(text);
}

// Returns the dtype probably meant, or null: x.to("flaot16") names a dtype where a device may stand, too.
const char *meant_dtype(const std::string &word)
{
    std::vector<const char *> words{name(YOKE_F32)};  // nearest to "float" with other floats
    for (yoke_dtype d = YOKE_NONE + 1; d < YOKE_DTYPE_COUNT; ++d) words.push_back(name(d));
    return nearest_word(word, words);
}

[[noreturn]] void refuse_form(const Spec &spec, const std::string &first)
{
    std::vector<std::string> kinds = known_kinds();
    std::vector<const char *> words{"auto", "uuid", "pci"};
    for (const std::string &kind : kinds) words.push_back(kind.c_str());
    const char *meant = first.empty() ? nullptr : meant_kind(first, words);
    const char *dtype = meant || first.empty() ? nullptr : meant_dtype(first);
    std::string hint;
    if (meant) hint = "did you mean '" + std::string(meant) + "'? ";
    if (dtype) hint = "did you mean the dtype '" + std::string(dtype) + "'? ";
    refuse(spec, "is not understood; " + hint + "use one of " + kForms);
}

}  // namespace

std::string Spec::needs_gpu_for() const
{
    std::string what;
    const auto add = [&](bool asked, const char *key) {
        if (asked) add_part(what, key);
    };
    add(form == Form::kUuid, "uuid");
    add(form == Form::kPci, "pci");
    add(min_cc > 0, "min_cc");
    add(same != Same::kAnything, "same");
    add(lease, "lease");
    add(form == Form::kAuto && kind.empty() && !name_holds.empty(), "name");
    return what;
}

bool Spec::allows_cpu() const
{
    if (kind == kHostKind) return true;
    return form == Form::kAuto && kind.empty() && fallback != Fallback::kError &&
           needs_gpu_for().empty();
}

Spec parse_spec(std::string_view text)
{
    Spec spec;
    spec.text = text;
    const size_t colon = text.find(':');
    const std::string first(text.substr(0, colon));
    const std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
    const bool has_rest = colon != std::string_view::npos;
    if (first == "auto") {
        if (has_rest) read_constraints(spec, rest);
    } else if (has_rest && (first == "uuid" || first == "pci")) {
        spec.form = first == "uuid" ? Spec::Form::kUuid : Spec::Form::kPci;
        read_prefix(spec, rest);
    } else if (is_known_kind(first)) {
        spec.kind = first;
        spec.form = has_rest ? Spec::Form::kIndex : Spec::Form::kKind;
        if (has_rest && first == kHostKind)
            refuse(spec, "has a number; use 'cpu', because the CPU is a single device");
        if (has_rest) read_index(spec, rest);
    } else {
        refuse_form(spec, first);
    }
    return spec;
}

Spec parse_spec_of_one(std::string_view text)
{
    Spec spec = parse_spec(text);
    if (spec.count > 1)
        fail(
            YOKE_E_VALUE,
            "device spec '%s' asks for n=%d devices, but this call opens one; select(n=%d) opens several",
            spec.text.c_str(), spec.count, spec.count);
    return spec;
}

std::string normal_pci(std::string_view address)
{
    std::string text = lower(address);
    const size_t colon = text.find(':');
    if (colon == 2) return "0000:" + text;  // bus first: the domain was left out
    if (colon == 8 && text.compare(0, 4, "0000") == 0) return text.substr(4);  // NVML's spelling
    return text;
}

}  // namespace yoke
