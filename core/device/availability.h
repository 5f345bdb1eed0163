// availability.h: whether a kind of device may be used, and the reason if not.
#pragma once

#include "yoke/types.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace yoke {

class Availability {
public:
    enum class Reason : uint8_t {
        kNone,      // usable; or, before opening, no known reason against
        kDisabled,  // the program has switched it off
        kNotNamed,  // YOKE_PLATFORMS leaves it out
        kForked,    // a driver does not survive a fork
        kAbsent,    // there is none: no module, no device
        kDefect,    // present but broken: a refused module, a failing driver
    };

    // Returns whether the kind can be used. Opens the kind, unless the program or YOKE_PLATFORMS forbids the kind.
    // Raises YOKE_E_VALUE for an unknown kind.
    static Availability of(std::string_view kind);

    // Returns the availability without opening the kind. A kind that was never opened counts as usable, unless the
    // program, YOKE_PLATFORMS or a fork forbids the kind.
    static Availability known(std::string_view kind);

    // Opens the kinds named in YOKE_PLATFORMS, except kinds switched off by the program. Raises YOKE_E_UNAVAILABLE
    // (in a forked child YOKE_E_FORKED) if a kind has no devices: no other kind is used instead.
    static void require_named();

    // Checks the kinds as require_named() does, for a choice among kinds. Raises also if the first kind of
    // YOKE_PLATFORMS that is not switched off cannot be used in this process: the choice begins with this kind.
    static void require_named_for_choice();

    Availability() = default;
    explicit operator bool() const noexcept { return reason_ == Reason::kNone; }
    Reason reason() const noexcept { return reason_; }
    bool is_defect() const noexcept
    {
        return reason_ == Reason::kForked || reason_ == Reason::kDefect;
    }

    // Returns the reason in a sentence with the remedy, "" for no reason. The text stays valid.
    const char *text() const noexcept { return text_; }

    // Raises YOKE_E_FORKED or YOKE_E_UNAVAILABLE, naming the kind, if it cannot be used.
    void require(std::string_view kind) const;

private:
    Availability(Reason reason, const char *text) : reason_(reason), text_(text) {}
    Availability(Reason reason, const std::string &text);  // keeps the text
    // Returns the reason why the program or YOKE_PLATFORMS forbids the kind, or no reason. Does not look whether the
    // kind is usable.
    static Availability allowed(std::string_view kind);

    Reason reason_ = Reason::kNone;
    const char *text_ = "";
};

}  // namespace yoke
