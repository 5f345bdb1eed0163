// shrink_word.h: messages between the live ranks of a group when they make a smaller group.
#pragma once

#include "core/rendezvous/members.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// Keys of the leader's word, and of a rank that has joined or follows.
inline constexpr const char *kWord = "word";
std::string here(int32_t rank);

// Ranks that are there, or a lower rank that leads, or the reason why there is no new group.
struct Word {
    std::optional<int32_t> leader;
    std::string refusal;
    uint64_t number = 0;  // number of the new group
    std::vector<int32_t> ranks;

    std::string encode() const;
    static Word decode(const std::string &text);
};

// The members of the group that the word is of, without a store.
Members members_from(const Members &former, const Word &word);

}  // namespace yoke
