// shrink_word.h: messages between the live ranks of a group when the ranks make a smaller group.
#pragma once

#include "core/rendezvous/members.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// Keys of the leader's word, and of a joined rank or follower.
inline constexpr const char *kWord = "word";
std::string here(int32_t rank);

// Ranks of the new group, or a lower rank as leader, or the reason for no new group.
struct Word {
    std::optional<int32_t> leader;
    std::string refusal;
    uint64_t number = 0;  // number of the new group
    std::vector<int32_t> ranks;

    std::string encode() const;
    static Word decode(const std::string &text);
};

// Returns the members of the word's group, without a store. Raises YOKE_E_COMM if the word does not name this rank.
Members members_from(const Members &former, const Word &word);

}  // namespace yoke
