#include "core/store/store_refusal.h"

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/store/socket.h"
#include "core/store/store_wire.h"

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <functional>
#include <thread>

namespace yoke {

namespace {

constexpr double kToTell = 1;  // seconds

using OwnFile = OwnedDescriptor<::close, false>;  // file in a nearly full descriptor table

// Gives the thread a copy of the process's descriptor table, with only `kept` and stderr open. If the system does not
// allow a copy, the thread stays with the process's table.
void take_own_descriptors(int kept)
{
    constexpr int kSome = 16;               // left open by an older kernel
    constexpr unsigned kUnshare = 1U << 1;  // CLOSE_RANGE_UNSHARE
    const int rest = std::max(kept, STDERR_FILENO) + 1;
    bool is_own = false;
#ifdef SYS_close_range
    is_own = syscall(SYS_close_range, rest, ~0U, kUnshare) == 0;
#endif
    is_own = is_own || unshare(CLONE_FILES) == 0;
    for (int each = 0; is_own && each < rest + kSome; ++each)
        if (each != kept && each != STDERR_FILENO) close(each);
}

// Runs `act` in a thread with a descriptor table of its own, where only `kept` and stderr are open, and waits for the
// end. If the system gives no thread, runs `act` in this thread. `act` neither logs nor calls the host program,
// because their files are closed.
void run_with_own_descriptors(int kept, const std::function<void()> &act)
{
    const auto run = [&]() noexcept {
        try {
            act();
        } catch (const std::exception &) {  // no memory: no notice
        }
    };
    std::thread thread;
    const std::string why = start_thread(thread, [&] {
        take_own_descriptors(kept);
        run();
    });
    if (!why.empty()) return run();
    thread.join();
}

// ---- Rank 0 -----------------------------------------------------------------------------------------------------

bool is_of_this_job(int connection, const PeerOptions &options, Deadline deadline)
{
    const auto greeting = wire::receive_frame(connection, wire::kLongestHello, deadline);
    if (!greeting || greeting->header.kind != wire::Kind::kHello) return false;
    wire::Reader reader = greeting->reader();
    (void)reader.number(), (void)reader.number();  // version and rank
    return reader.text() == options.cookie;
}

// Returns whether the rank has closed the connection: the rank did not wait so long, and comes again.
bool has_left(int connection)
{
    char byte;
    return recv(connection, &byte, 1, MSG_PEEK) == 0;
}

int open_one_of(const std::vector<uint16_t> &ports)
{
    for (const uint16_t port : ports)
        if (const int made = listening_at(port); made >= 0) return made;
    return -1;
}

// Accepts connections in sequence, and sends the refusal to ranks of this job. Ends after `ranks` such ranks, or
// after a second.
void refuse_all(int listening, int32_t ranks, const PeerOptions &options, std::string_view refusal)
{
    constexpr double kPause = 0.002, kToGreet = 0.25;
    for (const Deadline deadline = Deadline::after(kToTell); ranks > 0 && !deadline.has_passed();) {
        const OwnFile connection(accepted(listening));
        if (!connection.is_open()) {
            sleep_until(deadline.within(kPause));
            continue;
        }
        if (!is_of_this_job(connection.get(), options, deadline.within(kToGreet)) ||
            has_left(connection.get()))
            continue;
        char byte;  // until the rank has read, and closes
        ranks -= send_all(connection.get(), refusal, deadline);
        while (receive_all(connection.get(), &byte, 1, deadline)) {
        }
    }
}

}  // namespace

void turn_away(const Door &door, int32_t ranks, const PeerOptions &options,
               const std::string &why) noexcept
try {
    const std::string told =
        format("rank %d (%s): %s", options.rank, options.about.c_str(), why.c_str());
    const std::string refusal = std::move(wire::Writer(wire::Kind::kRefused).text(told)).take();
    run_with_own_descriptors(door.listening, [&] {
        const OwnFile opened(door.listening < 0 ? open_one_of(door.ports) : -1);
        refuse_all(opened.is_open() ? opened.get() : door.listening, ranks, options, refusal);
    });
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "the cause of rank 0's failure could not be sent to the other ranks: %s",
        error.what());
}

// ---- Another rank -----------------------------------------------------------------------------------------------

namespace {

// Connects as a rank and leaves at once with the reason. Returns whether the server has welcomed this rank by the
// deadline.
bool say_farewell(const SocketAddress &server, const PeerOptions &options, const std::string &why,
                  Deadline deadline)
{
    const OwnFile socket(connected(server, deadline));
    if (!socket.is_open()) return false;
    const std::string said =
        wire::hello(options) + std::move(wire::Writer(wire::Kind::kBye).text(why)).take();
    if (!send_all(socket.get(), said, deadline)) return false;
    const auto answer = wire::receive_frame(socket.get(), wire::kLongestWelcome, deadline);
    return answer && answer->header.kind == wire::Kind::kWelcome;
}

}  // namespace

void call_off(const std::vector<SocketAddress> &servers, const PeerOptions &options,
              const std::string &why) noexcept
try {
    constexpr double kPause = 0.02;
    run_with_own_descriptors(-1, [&] {
        for (const Deadline deadline = Deadline::after(kToTell); !deadline.has_passed();) {
            for (const SocketAddress &each : servers)
                if (say_farewell(each, options, why, deadline)) return;
            sleep_until(deadline.within(kPause));
        }
    });
} catch (const std::exception &error) {
    log(LogLevel::kInfo, "the cause of this rank's failure could not be sent to rank 0: %s",
        error.what());
}

void call_off_each(const std::vector<SocketAddress> &servers, const PeerOptions &options,
                   const std::string &why, Deadline deadline) noexcept
try {
    constexpr double kEach = 0.1;  // a server without an answer reads the message later
    run_with_own_descriptors(-1, [&] {
        for (const SocketAddress &each : servers)
            (void)say_farewell(each, options, why, deadline.within(kEach));
    });
} catch (const std::exception &error) {
    log(LogLevel::kInfo,
        "the cause of this rank's failure could not be sent to the other ranks: %s", error.what());
}

}  // namespace yoke
