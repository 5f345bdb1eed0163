#include "core/rendezvous/interfaces.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/store/socket.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace yoke {

std::vector<Interface> host_interfaces()
{
    std::vector<Interface> found;
    ifaddrs *all = nullptr;
    if (getifaddrs(&all) != 0) {
        if (!is_shortage(errno)) return found;
        fail(YOKE_E_IO, "the system does not list the networks of this host: %s; check ulimit -n",
             strerror(errno));
    }
    for (const int family : {AF_INET, AF_INET6})
        for (const ifaddrs *one = all; one; one = one->ifa_next) {
            if (!one->ifa_addr || one->ifa_addr->sa_family != family || !(one->ifa_flags & IFF_UP))
                continue;
            const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
            found.push_back({one->ifa_name, SocketAddress::of(one->ifa_addr, length)});
        }
    freeifaddrs(all);
    return found;
}

InterfaceChoice InterfaceChoice::read(std::string_view variable, std::string_view text)
{
    InterfaceChoice choice;
    choice.variable_ = variable;
    choice.text_ = text;
    std::string_view names = text;
    const auto take = [&](char sign) {
        const bool is_there = !names.empty() && names[0] == sign;
        if (is_there) names.remove_prefix(1);
        return is_there;
    };
    choice.is_except_ = take('^');
    choice.is_exact_ = take('=');
    choice.names_ = split_list(names);
    for (const std::string &name : choice.names_)
        if (name.empty() || name.find_first_of("^=") != name.npos)
            fail(
                YOKE_E_VALUE,
                "%s is '%s'; it must be like eth,ib (prefixes of names), =eth0 (a name) or ^docker,lo (all but these)",
                choice.variable_.c_str(), choice.text_.c_str());
    return choice;
}

namespace {

constexpr const char *kOwn = "YOKE_SOCKET_IFNAME";

}  // namespace

InterfaceChoice InterfaceChoice::configured()
{
    const char *value = config(kOwn);
    if (!value) return InterfaceChoice();
    const std::string origin = config_origin(kOwn);
    const char *said = getenv(origin.c_str());  // null if the program set the value
    InterfaceChoice choice = read(said ? origin : kOwn, value);
    if (said) choice.text_ = said;  // for Gloo's variable, the text differs from the value
    return choice;
}

bool InterfaceChoice::accepts(std::string_view name) const
{
    for (const std::string &known : names_)
        if (is_exact_ ? name == known : name.substr(0, known.size()) == known) return !is_except_;
    return is_except_;
}

std::vector<Interface> InterfaceChoice::among(const std::vector<Interface> &all) const
{
    std::vector<Interface> accepted;
    std::string names;
    for (const Interface &one : all) {
        if (accepts(one.name)) accepted.push_back(one);
        if ((", " + names + ", ").find(", " + one.name + ", ") == names.npos)
            add_part(names, one.name);
    }
    if (accepted.empty())
        fail(
            YOKE_E_VALUE,
            "%s is '%s', but no network of this host that is up and has an address has this name; the networks are %s",
            variable_.c_str(), text_.c_str(), names.c_str());
    return accepted;
}

std::vector<ForeignVariable> comm_variables()
{
    std::vector<ForeignVariable> all = foreign_variables();
    for (ForeignVariable &each : all) {
        if (each.effect != ForeignVariable::kSets || !each.setting.starts_with(kOwn)) continue;
        try {
            (void)InterfaceChoice::configured().among(host_interfaces());
        } catch (const Error &error) {
            each.effect = ForeignVariable::kUnreadable;
            each.setting = kOwn;
            each.says = error.what();
        }
    }
    return all;
}

std::string host_address(const InterfaceChoice &choice, int family)
{
    const std::vector<Interface> all = host_interfaces();
    const auto others = InterfaceChoice::read("", "^docker,lo");
    std::vector<Interface> fit = choice.empty() ? std::vector<Interface>() : choice.among(all);
    if (choice.empty())
        for (const Interface &one : all)
            if (others.accepts(one.name)) fit.push_back(one);
    if (fit.empty()) return "127.0.0.1";
    for (const Interface &one : fit)
        if (one.address.family() == family) return one.address.host();
    return fit[0].address.host();
}

}  // namespace yoke
