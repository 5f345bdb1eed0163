// locale.h: texts of the library read alike whatever locale the host program has chosen.
//
// A host may write a comma for the point; printf and strtod then do so too, in messages, recordings and JSON. While
// one of these lives they keep to C's locale, in this thread alone.
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
    // Made once and kept. If there is no memory (the C library has this locale ready), the thread's own locale stays
    // in use.
    static locale_t plain() noexcept
    {
        static const locale_t made = newlocale(LC_ALL_MASK, "C", nullptr);
        return made;
    }
    locale_t before_;
};

}  // namespace yoke
