// cause.h: the reason of a group's failure. The first rank to notice the failure publishes the cause, and every rank
// raises it.
#pragma once

#include "yoke/types.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace yoke {

// In a group's store.
inline constexpr const char *kCauseKey = "cause";

struct Cause {
    yoke_status status = YOKE_E_COMM;
    std::string text;            // whole text, alike on every rank
    bool is_planned = false;     // the group's end is no failure: the ranks go on without the group
    bool is_of_no_call = false;  // the raising call puts its name in front
    uint64_t number = 0;         // failure's number in this process; 0: not reported before
    size_t call_size = 0;        // size of the call's name at the text's beginning, or 0

    // Line of text for the store. For other lines, decode() returns a Cause with an error text.
    std::string encode() const;
    static Cause decode(std::string_view line);
    [[noreturn]] void raise() const;
    // Notes a text with the call's name and ": " in front.
    Cause &&of(std::string_view call) &&
    {
        call_size = call.size();
        return std::move(*this);
    }
};

}  // namespace yoke
