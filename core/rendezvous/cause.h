// cause.h: why a group failed: what the first rank that noticed has published, and every rank raises.
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
    bool is_planned = false;     // the group's end is no failure: its ranks go on without it
    bool is_of_no_call = false;  // whichever call raises it puts its name in front
    uint64_t number = 0;         // of the failure in this process; 0: it is told for the first time
    size_t call_size = 0;        // of the call's name, if the text begins with it; else 0

    // A line of text for the store; what is none gives a Cause that says so.
    std::string encode() const;
    static Cause decode(std::string_view line);
    [[noreturn]] void raise() const;
    // Says that the text begins with the name of that call, and ": ".
    Cause &&of(std::string_view call) &&
    {
        call_size = call.size();
        return std::move(*this);
    }
};

}  // namespace yoke
