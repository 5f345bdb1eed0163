#include "core/machine/rejection.h"

#include <cstddef>

namespace yoke {

namespace {

struct ReasonLine {
    const char *check;
    bool opening_refutes, lacks_code;
};
constexpr ReasonLine kReasons[] = {
    {"", false, false},
#define YOKE_REASON(name, check, opening_refutes, lacks_code) {check, opening_refutes, lacks_code},
#include "core/machine/reasons.def"
#undef YOKE_REASON
};

const ReasonLine &line_of(Reason reason) noexcept
{
    return kReasons[static_cast<size_t>(reason)];
}

}  // namespace

const char *check_of(Reason reason) noexcept
{
    return line_of(reason).check;
}

bool is_refuted_by_opening(Reason reason) noexcept
{
    return line_of(reason).opening_refutes;
}

bool lacks_code(Reason reason) noexcept
{
    return line_of(reason).lacks_code;
}

}  // namespace yoke
