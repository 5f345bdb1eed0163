#include "core/rendezvous/shrink_word.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <sstream>

namespace yoke {

std::string here(int32_t rank)
{
    return format("here/%d", rank);
}

std::string Word::encode() const
{
    if (leader) return format("see %d", *leader);
    if (!refusal.empty()) return "no " + cut(refusal);
    std::string text = std::to_string(number);
    for (const int32_t each : ranks) text += format(" %d", each);
    return text;
}

Word Word::decode(const std::string &text)
{
    Word word;
    if (text.starts_with("no ")) {
        word.refusal = text.substr(3);
        return word;
    }
    std::istringstream in(text);
    int32_t rank = 0;
    if (text.starts_with("see ")) {
        in.ignore(4) >> rank;
        word.leader = rank;
        return word;
    }
    in >> word.number;
    while (in >> rank) word.ranks.push_back(rank);
    return word;
}

Members members_from(const Members &former, const Word &word)
{
    const auto own = std::ranges::find(word.ranks, former.rank);
    if (own == word.ranks.end())
        fail(
            YOKE_E_COMM,
            "shrink: %s called shrink too late: the other ranks went on without it, as a group of %zu; use a longer timeout",
            describe(former.self()).c_str(), word.ranks.size());
    Members made;
    made.number = word.number;
    made.rank = static_cast<int32_t>(own - word.ranks.begin());
    for (const int32_t each : word.ranks) {
        made.ranks.push_back(former.ranks[static_cast<size_t>(each)]);
        made.ranks.back().rank = static_cast<int32_t>(made.ranks.size()) - 1;
        made.ranks.back().size = static_cast<int32_t>(word.ranks.size());
    }
    made.met_as = word.ranks;
    return made;
}

}  // namespace yoke
