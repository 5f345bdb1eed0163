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
        kNone,      // it can be used; or, where nothing was opened, nothing is known against it
        kDisabled,  // the program has switched it off
        kNotNamed,  // YOKE_PLATFORMS leaves it out
        kForked,    // a driver does not survive a fork
        kAbsent,    // there is none: no module, no device
        kDefect,    // it is there but broken: a refused module, a failing driver
    };

    // Opens the kind unless it may not be used. Raises YOKE_E_VALUE for a kind that is not known.
    static Availability of(std::string_view kind);

    // As far as it is known without opening anything.
    static Availability known(std::string_view kind);

    // Raises unless every kind that YOKE_PLATFORMS names has devices: nothing else is used in its place. What the
    // program itself has switched off need not.
    static void require_named();

    // The same for a choice among kinds, which begins with the first of them: that must serve this very process.
    static void require_named_for_choice();

    Availability() = default;
    explicit operator bool() const noexcept { return reason_ == Reason::kNone; }
    Reason reason() const noexcept { return reason_; }
    bool is_defect() const noexcept
    {
        return reason_ == Reason::kForked || reason_ == Reason::kDefect;
    }

    // One sentence with its remedy, "" for no reason. Stays valid.
    const char *text() const noexcept { return text_; }

    // Raises YOKE_E_FORKED or YOKE_E_UNAVAILABLE, naming the kind, if it cannot be used.
    void require(std::string_view kind) const;

private:
    Availability(Reason reason, const char *text) : reason_(reason), text_(text) {}
    Availability(Reason reason, const std::string &text);  // keeps the text
    // What the program or the user has decided, whether the kind could be used or not.
    static Availability allowed(std::string_view kind);

    Reason reason_ = Reason::kNone;
    const char *text_ = "";
};

}  // namespace yoke
