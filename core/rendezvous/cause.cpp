#include "core/rendezvous/cause.h"

#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace yoke {

// Returns "STATUS TEXT". The text is cut, because it may come from a script, at any length. A planned end has a
// negative number. A question mark after the number marks a cause of no call. A colon and a size give the length of
// the call's name.
std::string Cause::encode() const
{
    return std::to_string(is_planned ? -status : status) + (is_of_no_call ? "?" : "") +
           (call_size ? ":" + std::to_string(call_size) : "") + " " + cut(text);
}

Cause Cause::decode(std::string_view line)
{
    const size_t space = line.find(' ');
    std::string_view number = line.substr(0, space);
    const size_t colon = std::min(number.find(':'), number.size());
    const size_t size =
        parsed<size_t>(number.substr(std::min(colon + 1, number.size()))).value_or(0);
    number = number.substr(0, colon);
    const bool is_of_no_call = number.ends_with('?');
    if (is_of_no_call) number.remove_suffix(1);
    const std::optional<int32_t> status = parsed<int32_t>(number);
    if (space == std::string_view::npos || !status || *status == YOKE_OK)
        return {YOKE_E_COMM, "the group has failed, but the published cause cannot be read"};
    const std::string_view text = line.substr(space + 1);
    return {std::abs(*status),          std::string(text), *status < 0, is_of_no_call, 0,
            std::min(size, text.size())};
}

void Cause::raise() const
{
    Error error = Error(status, text).naming(call_size);
    throw number ? std::move(error).telling(number) : std::move(error);
}

}  // namespace yoke
