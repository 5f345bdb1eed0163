// cause.h: the reason why a group failed. The first rank that notices the failure publishes the cause, and every rank
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
    std::string text;            // all of it, alike on every rank
    bool is_planned = false;     // the end of the group is no failure: its ranks go on without the group
    bool is_of_no_call = false;  // the call that raises the cause puts its name in front
    uint64_t number = 0;         // failure's number in this process; 0: not reported before
    size_t call_size = 0;        // size of the call's name, if the text begins with the name; else 0

    // Line of text for the store. If the line is no cause, decode() returns a Cause that says so.
    std::string encode() const;
    static Cause decode(std::string_view line);
    [[noreturn]] void raise() const;
    // Notes that the text begins with the call's name and ": ".
    Cause &&of(std::string_view call) &&
    {
        call_size = call.size();
        return std::move(*this);
    }
};

}  // namespace yoke
