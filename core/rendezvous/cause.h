// cause.h: the reason of a group's failure. The first rank to notice the failure publishes the cause, and every rank
// raises it.
#pragma once

#include "yoke/types.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace yoke {

// Key of the cause in a group's store.
inline constexpr const char *kCauseKey = "cause";

struct Cause {
    yoke_status status = YOKE_E_COMM;
    std::string text;            // whole text, alike on every rank
    bool is_planned = false;     // the group's end is no failure: the ranks go on without the group
    bool is_of_no_call = false;  // the raising call puts its name in front
    uint64_t number = 0;         // failure's number in this process; 0: not reported before
    size_t call_size = 0;        // size of the call's name at the text's beginning, or 0

    // Returns the cause as a line of text for the store. decode() reads such a line; for other lines, decode()
    // returns a Cause of YOKE_E_COMM with an error text.
    std::string encode() const;
    static Cause decode(std::string_view line);
    [[noreturn]] void raise() const;
    // Records that the text begins with the name of this call. The error names the call by this size.
    Cause &&of(std::string_view call) &&
    {
        call_size = call.size();
        return std::move(*this);
    }
};

}  // namespace yoke
