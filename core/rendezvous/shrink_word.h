// shrink_word.h: what ranks of a group that still live tell each other when they make a smaller one.
#pragma once

#include "core/rendezvous/members.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// The keys under which the leader's word stands, and that of a rank which has come, or follows.
inline constexpr const char *kWord = "word";
std::string here(int32_t rank);

// Who is there, or that a lower rank leads, or why there is no new group.
struct Word {
    std::optional<int32_t> leader;
    std::string refusal;
    uint64_t number = 0;  // of the new group
    std::vector<int32_t> ranks;

    std::string encode() const;
    static Word decode(const std::string &text);
};

// The members of the group that the word is of, without a store.
Members members_from(const Members &former, const Word &word);

}  // namespace yoke
