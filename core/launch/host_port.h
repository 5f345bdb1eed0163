// host_port.h: text "HOST:PORT", with an IPv6 address in brackets.
#pragma once

#include "core/base/text.h"

namespace yoke {

struct HostPort {
    std::string host;  // without brackets
    uint16_t port = 0;
};

inline std::optional<HostPort> parse_host_port(std::string_view text)
{
    const size_t colon = text.rfind(':');
    if (colon == text.npos) return std::nullopt;
    const uint16_t port = parsed<uint16_t>(text.substr(colon + 1)).value_or(0);
    std::string_view host = text.substr(0, colon);
    const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (in_brackets) host = host.substr(1, host.size() - 2);
    const bool is_number = host.find(':') != host.npos;
    if (port == 0 || host.empty() || is_number != in_brackets) return std::nullopt;
    return HostPort{std::string(host), port};
}

}  // namespace yoke
