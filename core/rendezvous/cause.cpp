#include "core/rendezvous/cause.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <cstdlib>
#include <optional>

namespace yoke {

// Its text may be a script's, of any length. A planned end has a number below zero, one of no call a question mark
// behind it.
std::string Cause::encode() const
{
    return std::to_string(is_planned ? -status : status) + (is_of_no_call ? "? " : " ") + cut(text);
}

Cause Cause::decode(std::string_view line)
{
    const size_t space = line.find(' ');
    std::string_view number = line.substr(0, space);
    const bool is_of_no_call = number.ends_with('?');
    if (is_of_no_call) number.remove_suffix(1);
    const std::optional<int32_t> status = parsed<int32_t>(number);
    if (space == std::string_view::npos || !status || *status == YOKE_OK)
        return {YOKE_E_COMM, "the group has failed, and what its ranks told of it cannot be read"};
    return {std::abs(*status), std::string(line.substr(space + 1)), *status < 0, is_of_no_call};
}

void Cause::raise() const
{
    throw Error(status, text);
}

}  // namespace yoke
