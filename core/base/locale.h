// locale.h: keeps texts of the library independent of the locale of the host program.
//
// With the host program's locale, printf and strtod may use a comma for the point, also in messages, recordings and
// JSON. While a PlainLocale lives, they use the C locale, only in this thread.
#pragma once

#include <locale.h>

namespace yoke {

class PlainLocale {
public:
    PlainLocale() noexcept : before_(uselocale(plain())) {}
    ~PlainLocale() { uselocale(before_); }
    PlainLocale(const PlainLocale &) = delete;
    PlainLocale &operator=(const PlainLocale &) = delete;

private:
    // Returns the C locale, made once and kept. If there is no memory (the C library has this locale ready), returns
    // 0, and the thread's own locale stays in use.
    static locale_t plain() noexcept
    {
        static const locale_t made = newlocale(LC_ALL_MASK, "C", nullptr);
        return made;
    }
    locale_t before_;
};

}  // namespace yoke
