// rejection.h: why a card cannot be used. The reason decides, and the doctor's check follows from it; the text is for
// people.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace yoke {

enum class Reason : uint8_t {
    kNone,
#define YOKE_REASON(name, check, opening_refutes, lacks_code) name,
#include "core/machine/reasons.def"
#undef YOKE_REASON
};

// Returns the doctor's check for a reason, "driver-bound"; "" if no check exists.
const char *check_of(Reason reason) noexcept;

// Returns whether an opened device is proof enough that the reason does not hold.
bool is_refuted_by_opening(Reason reason) noexcept;

// Returns whether the reason is missing code in this build. The backend skips such a card, and the next card gets its
// number.
bool lacks_code(Reason reason) noexcept;

struct Rejection {
    Reason reason = Reason::kNone;
    std::string text;  // a sentence with its remedy

    Rejection() = default;
    Rejection(Reason why, std::string sentence) : reason(why), text(std::move(sentence)) {}
    explicit operator bool() const noexcept { return reason != Reason::kNone; }
};

}  // namespace yoke
