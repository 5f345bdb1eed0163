#include "core/machine/visibility.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/machine/catalog.h"
#include "core/machine/files.h"
#include "core/machine/nvidia_card.h"

#include <algorithm>
#include <cctype>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace yoke {

namespace {

// Returns whether CUDA would count the card without variables. With an unknown driver, only a rejection counts.
bool is_counted(const Machine &machine, const Card &card)
{
    const yoke_card_info &info = card.info;
    if (!is_nvidia(info) || info.kind == YOKE_CARD_MIG || info.present == 0) return false;
    if (is_off_bus(info) || std::string_view(info.driver) == "nvgpu") return true;
    if (info.mig == 1 && info.mig_instances == 0) return false;
    if (info.nvml_index >= 0) return true;
    if (!card.granted) return false;
    if (!may_be_held_by_nvidia(info)) return false;
    if (!info.driver[0] && card.rejected != Reason::kNone) return false;
    // NVML shows all cards available to this process, but sleeping cards are not asked for.
    return !machine.nvml.answered() || info.asleep == 1;
}

// Speed of a card for FASTEST_FIRST. CUDA does not document its rule. Compute capability, then multiprocessors times
// clock, gives CUDA's order for the known cards. Equal cards stay in the order of addresses.
struct Speed {
    int32_t level;
    double rate;
};
// Returns the card's speed; by the model's figures if no management library reports on the card.
Speed speed_of(const yoke_card_info &info)
{
    const double clock = std::isnan(info.sm_clock_max) ? 1 : info.sm_clock_max;
    const int model = info.cc_major < 0 ? find_model(info.name, info.memory_total) : -1;
    if (model < 0)
        return {info.cc_major * 100 + info.cc_minor, std::max(info.multiprocessors, 1) * clock};
    const yoke_catalog_card &known = catalog()[static_cast<size_t>(model)];
    return {known.cc_major * 100 + known.cc_minor, known.multiprocessors * clock};
}
bool is_faster(const yoke_card_info &a, const yoke_card_info &b)
{
    const Speed left = speed_of(a), right = speed_of(b);
    return left.level != right.level ? left.level > right.level : left.rate > right.rate;
}

bool differ(const Machine &machine, const std::vector<int> &cards)
{
    return std::any_of(cards.begin(), cards.end(), [&](int card) {
        const yoke_card_info &one = machine.card(card).info;
        const yoke_card_info &first = machine.card(cards[0]).info;
        return one.pci_id != first.pci_id || std::string_view(one.name) != first.name ||
               one.cc_major != first.cc_major || one.cc_minor != first.cc_minor;
    });
}

std::vector<int> counted_cards(const Machine &machine, bool by_address)
{
    std::vector<int> cards;
    for (size_t i = 0; i < machine.cards.size(); ++i)
        if (is_counted(machine, machine.cards[i])) cards.push_back(static_cast<int>(i));
    const auto info = [&](int card) -> const yoke_card_info & { return machine.card(card).info; };
    std::stable_sort(cards.begin(), cards.end(), [&](int a, int b) {
        return std::string_view(info(a).pci) < std::string_view(info(b).pci);
    });
    if (!by_address)
        std::stable_sort(cards.begin(), cards.end(),
                         [&](int a, int b) { return is_faster(info(a), info(b)); });
    return cards;
}

// Returns the number at the start of a text, as strtoul reads it; -1 for none, and for a number below 0. `rest` is
// the place after the number.
int64_t leading_number(const std::string &text, size_t *rest = nullptr)
{
    size_t i = 0;
    while (i < text.size() && isspace(static_cast<unsigned char>(text[i]))) ++i;
    const bool negative = i < text.size() && text[i] == '-';
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    const size_t first = i;
    int64_t value = 0;
    for (; i < text.size() && isdigit(static_cast<unsigned char>(text[i])); ++i)
        value = std::min<int64_t>(value * 10 + (text[i] - '0'), INT_MAX);
    if (i == first || (negative && value > 0)) return -1;
    if (rest) *rest = i;
    return value;
}

// Splits an entry that may stand for several: at every character that cannot be in a card's name.
std::vector<std::string> words_of(const std::string &entry)
{
    std::vector<std::string> words(1);
    for (const char c : entry)
        if (isalnum(static_cast<unsigned char>(c)) || strchr("-+/_.", c))
            words.back() += c;
        else if (!words.back().empty())
            words.emplace_back();
    if (words.back().empty()) words.pop_back();
    return words;
}

// Returns the numbers of "0-2"; nullopt for other texts.
std::optional<std::pair<int, int>> range_of(const std::string &word)
{
    int first = 0, last = 0, end = 0;
    const bool is_one = sscanf(word.c_str(), "%9d-%9d%n", &first, &last, &end) == 2 &&
                        static_cast<size_t>(end) == word.size();
    return is_one && 0 <= first && first < last ? std::optional(std::pair(first, last))
                                                : std::nullopt;
}

std::string blankless(std::string text)
{
    std::erase_if(text, [](char c) { return isspace(static_cast<unsigned char>(c)); });
    return text;
}

bool starts_with(const std::string &text, const char *prefix)
{
    return text.rfind(prefix, 0) == 0;
}

// "MIG-GPU-UUID/7/0", as drivers before 470 name an instance: by its card and two numbers.
struct OlderName {
    std::string card;
    int gpu_instance = -1, compute_instance = -1;
};

std::optional<OlderName> older_name(const std::string &entry)
{
    const size_t slash = entry.find('/');
    if (!starts_with(entry, "MIG-GPU-") || slash == entry.npos) return std::nullopt;
    OlderName name{entry.substr(4, slash - 4)};
    int end = 0;
    const int found = sscanf(entry.c_str() + slash, "/%9d/%9d%n", &name.gpu_instance,
                             &name.compute_instance, &end);
    return found == 2 && slash + static_cast<size_t>(end) == entry.size() ? std::optional(name)
                                                                          : std::nullopt;
}

class Reader {
public:
    Reader(const Machine &machine, const std::string &value, bool by_address)
        : machine_(machine),
          counted_(counted_cards(machine, by_address)),
          entries_(split_at_commas(value))
    {
        // The first entry fixes the kind of all.
        kind_ = starts_with(value, "GPU-") ? "GPU-" : starts_with(value, "MIG-") ? "MIG-" : "";
    }

    bool uses_numbers() const { return !*kind_; }
    const std::vector<int> &counted() const { return counted_; }

    std::vector<int> read()
    {
        std::vector<int> cards;
        for (const std::string &entry : entries_) {
            std::string why;
            const int card = find(entry, true, why);
            if (card < 0) {
                stop(entry, why, cards.empty());
                break;
            }
            if (std::find(cards.begin(), cards.end(), card) != cards.end()) {
                problem_ =
                    format("entry '%s' names a card for the second time, which hides all cards",
                           entry.c_str());
                return {};
            }
            cards.push_back(card);
            note_rest(entry);
        }
        return cards;
    }

    const std::string &problem() const { return problem_; }
    const std::string &dropped() const { return dropped_; }

    // Returns the list that the user probably meant: each valid entry once, as far as one list can name them, in
    // UUIDs if kinds were mixed. CUDA accepts no list with an instance and another entry: from such a mixture, the
    // whole cards stay.
    std::string corrected() const
    {
        std::vector<int> cards;
        bool mixed = false, any_whole = false;
        for (const std::string &word : meant_words()) {
            std::string why;
            const int card = find_meant(word, why);
            if (card < 0) continue;
            mixed |= *kind_ ? !starts_with(word, kind_) : leading_number(word) < 0;
            any_whole |= !is_split(card);
            if (std::find(cards.begin(), cards.end(), card) == cards.end()) cards.push_back(card);
        }
        if (any_whole) std::erase_if(cards, [this](int card) { return is_split(card); });
        if (!any_whole && !cards.empty()) cards.resize(1);
        return joined(cards, ",", [&](int card) { return name_of(card, mixed); });
    }

private:
    // Returns a word for each card that the list may have been meant to name.
    std::vector<std::string> meant_words() const
    {
        std::vector<std::string> words;
        for (const std::string &entry : entries_)
            for (const std::string &word : words_of(entry)) {
                const auto range = range_of(word);
                if (!range) words.push_back(word);
                const int last = range ? range->second : -1;
                const int most = static_cast<int>(counted_.size());
                for (int i = range ? range->first : 0; i <= last && i < most; ++i)
                    words.push_back(std::to_string(i));
            }
        return words;
    }

    // Notes text after an entry's number. CUDA reads the number and silently drops the rest.
    void note_rest(const std::string &entry)
    {
        size_t end = 0;
        if (*kind_ || leading_number(entry, &end) < 0) return;
        if (const std::string rest = trimmed(entry.substr(end)); !rest.empty())
            add_part(
                dropped_,
                format("CUDA reads the entry '%s' as %s and drops '%s'", trimmed(entry).c_str(),
                       blankless(entry.substr(0, end)).c_str(), rest.c_str()),
                "; ");
    }

    // Returns the index of an entry's card; -1 with the reason for none. `strict`: the list's kind is required.
    int find(const std::string &entry, bool strict, std::string &why) const
    {
        const bool prefix = starts_with(entry, "GPU-") || starts_with(entry, "MIG-");
        if (strict && *kind_ && !starts_with(entry, kind_)) {
            why = format("does not begin with %s, as the first entry does", kind_);
            return -1;
        }
        if (strict && !*kind_ && prefix) {
            why = "is a UUID among numbers";
            return -1;
        }
        return prefix ? find_prefix(entry, why) : find_number(entry, why);
    }

    // Returns whether the card is an instance, or shown by CUDA as its first instance.
    bool is_split(int card) const
    {
        const yoke_card_info &info = machine_.card(card).info;
        return info.kind == YOKE_CARD_MIG || info.mig == 1;
    }

    // Finds the card of an entry of any kind. In a container, too high a number may be the host's device file number.
    int find_meant(const std::string &entry, std::string &why) const
    {
        const int card = find(entry, false, why);
        const int64_t number = leading_number(entry);
        if (card >= 0 || number < 0 || machine_.container.empty()) return card;
        for (const int each : counted_)
            if (machine_.card(each).info.minor == number) return each;
        return -1;
    }

    int find_number(const std::string &entry, std::string &why) const
    {
        const int64_t number = leading_number(entry);
        const std::string clean = blankless(entry);
        if (number < 0) {
            why = clean.empty()             ? "is empty"
                  : starts_with(clean, "-") ? "is below 0"
                                            : "is neither a number nor a GPU- or MIG- UUID";
            return -1;
        }
        if (number < static_cast<int64_t>(counted_.size()))
            return counted_[static_cast<size_t>(number)];
        why = counted_.empty() ? "names a card, but there is none"
                               : format("is beyond the last card, %zu", counted_.size() - 1);
        return -1;
    }

    int find_prefix(const std::string &prefix, std::string &why) const
    {
        const bool instance = starts_with(prefix, "MIG-");
        if (const auto older = older_name(prefix))
            if (const int card = find_older(*older); card >= 0) return card;
        int found = -1;
        for (size_t i = 0; i < machine_.cards.size(); ++i) {
            const Card &card = machine_.cards[i];
            const bool may = instance ? card.info.kind == YOKE_CARD_MIG && card.info.present != 0
                                      : is_counted(machine_, card);
            if (!may || !starts_with(card.info.uuid, prefix.c_str())) continue;
            if (found >= 0) {
                why = "is the beginning of more than one UUID";
                return -1;
            }
            found = static_cast<int>(i);
        }
        if (found < 0)
            why = older_name(prefix) ? "names no MIG instance of this machine"
                                     : "is not the beginning of any UUID";
        return found;
    }

    int find_older(const OlderName &name) const
    {
        const char *whole = "";
        for (size_t i = 0; i < machine_.cards.size(); ++i) {
            const Card &card = machine_.cards[i];
            const bool instance = card.info.kind == YOKE_CARD_MIG;
            if (!instance) whole = card.info.uuid;
            if (instance && card.info.present != 0 && is_same_uuid(whole, name.card) &&
                card.gpu_instance == name.gpu_instance &&
                card.compute_instance == name.compute_instance)
                return static_cast<int>(i);
        }
        return -1;
    }

    void stop(const std::string &entry, const std::string &why, bool first)
    {
        // "-1", "none", "NoDevFiles": usual ways to hide all cards.
        if (first && entries_.size() == 1 && !*kind_) {
            const std::string clean = blankless(entry);
            if (starts_with(clean, "-") || clean.empty() || clean == "none" ||
                clean == "NoDevFiles")
                return;
        }
        problem_ = format("entry '%s' %s, so CUDA ends the list there", entry.c_str(), why.c_str());
    }

    std::string name_of(int card, bool by_uuid) const
    {
        const auto place = std::find(counted_.begin(), counted_.end(), card);
        if (by_uuid || *kind_ || place == counted_.end()) return machine_.card(card).info.uuid;
        return std::to_string(place - counted_.begin());
    }

    const Machine &machine_;
    std::vector<int> counted_;
    std::vector<std::string> entries_;
    const char *kind_;
    std::string problem_, dropped_;
};

// Replaces a partitioned card by its first instance, as CUDA does. Beside an instance, CUDA shows no other card.
void apply_instances(const Machine &machine, Visible &visible)
{
    const auto is_instance = [&](int card) {
        return machine.card(card).info.kind == YOKE_CARD_MIG;
    };
    for (int &card : visible.cards) {
        const yoke_card_info &info = machine.card(card).info;
        const size_t next = static_cast<size_t>(card) + 1;
        const bool split = info.kind != YOKE_CARD_MIG && info.mig == 1;
        if (split && next < machine.cards.size() && is_instance(static_cast<int>(next))) ++card;
    }
    const auto first = std::find_if(visible.cards.begin(), visible.cards.end(), is_instance);
    if (first == visible.cards.end() || visible.cards.size() == 1) return;
    const int shown = *first;
    visible.cards = {shown};
    if (visible.problem.empty())
        visible.problem = format("CUDA shows a process one MIG instance and no other card: %s",
                                 machine.card(shown).info.uuid);
}

}  // namespace

Visible visible_cards(const Machine &machine, const std::optional<std::string> &visible,
                      const std::optional<std::string> &order)
{
    // Any other value counts as the default, FASTEST_FIRST.
    const bool by_address = order && *order == "PCI_BUS_ID";
    Visible result;
    if (!visible) {
        result.cards = counted_cards(machine, by_address);
        apply_instances(machine, result);
        return result;
    }
    Reader reader(machine, *visible, by_address);
    result.cards = reader.read();
    result.problem = reader.problem();
    result.dropped = reader.dropped();
    result.mixed_order = reader.uses_numbers() && !blankless(*visible).empty() && !by_address &&
                         !reader.counted().empty() && differ(machine, reader.counted());
    apply_instances(machine, result);
    if (!result.problem.empty() || !result.dropped.empty()) result.corrected = reader.corrected();
    return result;
}

}  // namespace yoke
