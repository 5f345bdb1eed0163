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

// The doctor's check that looks into a reason, "driver-bound"; "" where no check does.
const char *check_of(Reason reason) noexcept;

// Whether a device that was opened shows by that alone that the reason does not hold.
bool is_refuted_by_opening(Reason reason) noexcept;

// Whether the reason is that this build has no code for the card: its backend passes over such a card, and the next one
// has its number.
bool lacks_code(Reason reason) noexcept;

struct Rejection {
    Reason reason = Reason::kNone;
    std::string text;  // one sentence with its remedy

    Rejection() = default;
    Rejection(Reason why, std::string sentence) : reason(why), text(std::move(sentence)) {}
    explicit operator bool() const noexcept { return reason != Reason::kNone; }
};

}  // namespace yoke
