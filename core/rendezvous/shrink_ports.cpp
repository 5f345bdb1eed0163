// Ports at which the live ranks of a group find each other.
#include "core/base/entropy.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/rendezvous/shrink_rendezvous.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

namespace yoke {

// Opens the port and draws the secret. Listens at this machine's address, as peers know it. If the address belongs to
// another machine (behind a translation), listens at all addresses. Raises YOKE_E_IO if it cannot listen.
void ShrinkPorts::open(const RankInfo &self)
{
    constexpr double kToResolve = 5;
    const Deadline deadline = Deadline::after(kToResolve);
    SocketAddress own = resolve(self.address, 0, deadline)[0];
    listening_ = Socket::listen(own);
    if (!listening_.present()) listening_ = Socket::listen(SocketAddress::any(own.family(), 0));
    if (!listening_.present())
        fail(YOKE_E_IO, "cannot listen on %s for the other ranks: %s%s", self.address.c_str(),
             strerror(errno), is_shortage(errno) ? "; check ulimit -n" : "");
    secret_ = format("%016llx", static_cast<unsigned long long>(unguessable_number()));
}

std::string ShrinkPorts::text() const
{
    return std::to_string(listening_.local().port()) + " " + secret_;
}

void ShrinkPorts::read(const std::vector<std::string> &texts)
{
    for (const std::string &each : texts) {
        const size_t space = each.find(' ');
        ports_.push_back(parsed<uint16_t>(each.substr(0, space)).value_or(0));
    }
    secret_ = texts[0].substr(texts[0].find(' ') + 1);
}

Socket ShrinkPorts::listening() const
{
    Socket one = Socket::adopt([this] { return fcntl(listening_.fd(), F_DUPFD_CLOEXEC, 0); });
    if (!one.present())
        fail(YOKE_E_IO, "the rank cannot listen for the other ranks: %s; check ulimit -n",
             strerror(errno));
    return one;
}

SocketAddress ShrinkPorts::address(const RankInfo &of, Deadline deadline) const
{
    SocketAddress found = resolve(of.address, 0, deadline)[0];
    found.set_port(ports_[static_cast<size_t>(of.rank)]);
    return found;
}

PeerOptions ShrinkPorts::peer_options(const Members &of, PeerObserver observer) const
{
    PeerOptions made;
    made.cookie = cookie();
    made.rank = of.rank;
    made.size = of.size();
    made.silence_s = configured_silence();
    made.observer = std::move(observer);
    made.about = describe_process(of.self());
    return made;
}

}  // namespace yoke
