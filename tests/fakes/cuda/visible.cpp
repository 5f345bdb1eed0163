// CUDA_VISIBLE_DEVICES as CUDA's runtime reads the variable: the first invalid entry ends the list, a duplicate
// empties the list.
#include "tests/fakes/cuda/visible.h"

#include <strings.h>
#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace yoke::fake {

namespace {

enum class Kind { kNumber, kCard, kInstance };

std::string stripped(const std::string &text)
{
    size_t from = 0, to = text.size();
    while (from < to && isspace(static_cast<unsigned char>(text[from]))) ++from;
    while (to > from && isspace(static_cast<unsigned char>(text[to - 1]))) --to;
    return text.substr(from, to - from);
}

std::vector<std::string> split(const std::string &text)
{
    std::vector<std::string> found;
    size_t from = 0;
    for (size_t to = 0; to != std::string::npos; from = to + 1) {
        to = text.find(',', from);
        found.push_back(stripped(text.substr(from, to == std::string::npos ? to : to - from)));
    }
    return found;
}

bool begins(const std::string &whole, const std::string &part)
{
    return !strncasecmp(whole.c_str(), part.c_str(), part.size());
}

Kind kind_of(const std::string &entry)
{
    return begins(entry, "GPU-")   ? Kind::kCard
           : begins(entry, "MIG-") ? Kind::kInstance
                                   : Kind::kNumber;
}

// Returns a whole card. A partitioned card stands for its first instance; without an instance the result is empty.
std::optional<Chosen> whole(const std::vector<Choice> &cards, int card)
{
    const Choice &choice = cards[static_cast<size_t>(card)];
    if (!choice.partitioned) return Chosen{card, -1};
    return choice.instances.empty() ? std::nullopt : std::optional(Chosen{card, 0});
}

// Finds a card by the digits at the entry's beginning, with or without a sign.
std::optional<Chosen> by_number(const std::vector<Choice> &cards, const std::string &entry)
{
    char *end = nullptr;
    const long number = strtol(entry.c_str(), &end, 10);
    if (end == entry.c_str() || number < 0 || number >= static_cast<long>(cards.size()))
        return std::nullopt;
    return whole(cards, static_cast<int>(number));
}

std::optional<Chosen> by_uuid(const std::vector<Choice> &cards, const std::string &entry)
{
    std::optional<Chosen> found;
    for (size_t i = 0; i < cards.size(); ++i) {
        if (!begins(cards[i].uuid, entry)) continue;
        if (found) return std::nullopt;
        found = whole(cards, static_cast<int>(i));
    }
    return found;
}

std::optional<Chosen> by_instance(const std::vector<Choice> &cards, const std::string &entry)
{
    for (size_t card = 0; card < cards.size(); ++card)
        for (size_t i = 0; i < cards[card].instances.size(); ++i)
            if (!strcasecmp(cards[card].instances[i].c_str(), entry.c_str()))
                return Chosen{static_cast<int>(card), static_cast<int>(i)};
    return std::nullopt;
}

// Keeps only the first instance, at the front, because a process uses a single instance.
void keep_one_instance(std::vector<Chosen> &chosen)
{
    const auto first = std::find_if(chosen.begin(), chosen.end(),
                                    [](const Chosen &one) { return one.instance >= 0; });
    if (first == chosen.end()) return;
    const Chosen kept = *first;
    std::erase_if(chosen, [](const Chosen &one) { return one.instance >= 0; });
    chosen.insert(chosen.begin(), kept);
}

std::vector<Chosen> listed(const std::vector<Choice> &cards, const std::string &variable)
{
    std::vector<Chosen> chosen;
    const std::vector<std::string> entries = split(variable);
    for (const std::string &entry : entries) {
        if (kind_of(entry) != kind_of(entries.front())) break;
        const auto found = kind_of(entry) == Kind::kNumber ? by_number(cards, entry)
                           : kind_of(entry) == Kind::kCard ? by_uuid(cards, entry)
                                                           : by_instance(cards, entry);
        if (!found) break;
        for (const Chosen &earlier : chosen)
            if (earlier.card == found->card && earlier.instance == found->instance) return {};
        chosen.push_back(*found);
    }
    return chosen;
}

}  // namespace

std::vector<Chosen> visible(const std::vector<Choice> &cards,
                            const std::optional<std::string> &variable)
{
    std::vector<Chosen> chosen;
    if (variable)
        chosen = listed(cards, *variable);
    else
        for (size_t i = 0; i < cards.size(); ++i)
            if (const auto one = whole(cards, static_cast<int>(i))) chosen.push_back(*one);
    keep_one_instance(chosen);
    return chosen;
}

}  // namespace yoke::fake
