// availability.h: whether a kind of device may be used, and if not, why: who asks, asks here.
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

    // Opens the kind unless it may not be used. Raises YOKE_E_VALUE for an unknown kind.
    static Availability of(std::string_view kind);

    // Returns the availability known without opening the kind.
    static Availability known(std::string_view kind);

    // Raises unless every kind in YOKE_PLATFORMS has devices: no other kind is used instead. Kinds switched off by
    // the program are left out.
    static void require_named();

    // Checks likewise for a choice among kinds. The choice begins with the first kind, so this kind must be usable in
    // this process.
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
    // Returns the decision of the program or the user, whether or not the kind is usable.
    static Availability allowed(std::string_view kind);

    Reason reason_ = Reason::kNone;
    const char *text_ = "";
};

}  // namespace yoke
