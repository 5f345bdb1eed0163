#include "core/store/watch.h"

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/start_thread.h"
#include "core/store/socket.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <thread>

namespace yoke {

void Watched::on_tick(double) noexcept {}

namespace {

using Clock = Deadline::Clock;

struct Entry {
    std::shared_ptr<Watched> what;
    int fd;
    Clock::duration tick;  // 0: no ticks
    Clock::time_point due;
};

// Last number of a watch. No number is used twice, even in a forked child, because the child may still release
// objects watched by its parent.
std::atomic<uint64_t> last_number{0};

// Watch of a process. A fork leaves the watch to the parent.
class Watch {
public:
    Watch();
    uint64_t add(const std::shared_ptr<Watched> &what, int fd, uint32_t events, double tick_s);
    void change(uint64_t number, uint32_t events) noexcept;
    void remove(uint64_t number) noexcept;
    void settle() noexcept;
    bool is_own_thread() const noexcept { return std::this_thread::get_id() == thread_.load(); }

private:
    static constexpr uint64_t kWakeUp = 0;  // number of the watch's own descriptor

    void start();
    [[noreturn]] void run();
    int ms_until_due();
    void call_ready(const epoll_event &event);
    void call_due();
    uint64_t take_due(Clock::time_point now, double *late_s);
    std::shared_ptr<Watched> enter(uint64_t number);
    void leave(std::shared_ptr<Watched> what);
    void wake_up() noexcept;

    Socket epoll_, wake_up_;
    std::mutex mutex_;
    std::condition_variable left_;
    std::map<uint64_t, Entry> entries_;
    uint64_t running_ = kWakeUp, turns_ = 0;
    bool is_started_ = false;
    std::atomic<std::thread::id> thread_{};
};

Watch::Watch()
    : epoll_(Socket::adopt([] { return epoll_create1(EPOLL_CLOEXEC); })),
      wake_up_(Socket::adopt([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }))
{
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kWakeUp;
    const int failure = errno;
    const bool has_both = epoll_.present() && wake_up_.present();
    if (!has_both) errno = failure;
    if (!has_both || epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, wake_up_.fd(), &event) != 0)
        fail(
            YOKE_E_IO,
            "the system has no descriptor to watch the connections to other ranks: %s; check ulimit -n",
            strerror(errno));
}

// Starts the watch thread at the first call. The caller holds the lock. Raises YOKE_E_OOM if the system gives no
// thread.
void Watch::start()
{
    if (is_started_) return;
    const std::string why = start_detached_thread([this] { run(); });
    if (!why.empty())
        fail(
            YOKE_E_OOM,
            "the system cannot start the thread that watches the connections to other ranks: %s; check ulimit -u, and the limit of processes of the container",
            why.c_str());
    is_started_ = true;
}

uint64_t Watch::add(const std::shared_ptr<Watched> &what, int fd, uint32_t events, double tick_s)
{
    const std::lock_guard lock(mutex_);
    start();
    const uint64_t number = ++last_number;
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    if (fd >= 0 && epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) != 0)
        fail(YOKE_E_IO, "a connection to another rank cannot be watched: %s; check ulimit -n",
             strerror(errno));
    const auto tick =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(tick_s));
    entries_.emplace(number, Entry{what, fd, tick, Clock::now() + tick});
    wake_up();
    return number;
}

void Watch::change(uint64_t number, uint32_t events) noexcept
{
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(number);
    if (found == entries_.end()) return;
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void Watch::remove(uint64_t number) noexcept
{
    std::shared_ptr<Watched> last;  // ends without the lock
    std::unique_lock lock(mutex_);
    if (const auto found = entries_.find(number); found != entries_.end()) {
        if (found->second.fd >= 0) epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, found->second.fd, nullptr);
        last = std::move(found->second.what);
        entries_.erase(found);
    }
    // The object may have removed itself and still be running.
    if (!is_own_thread()) left_.wait(lock, [&] { return running_ != number; });
    lock.unlock();
}

void Watch::settle() noexcept
{
    std::unique_lock lock(mutex_);
    const uint64_t turn = turns_;
    if (!is_own_thread()) left_.wait(lock, [&] { return running_ == kWakeUp || turns_ != turn; });
}

void Watch::wake_up() noexcept
{
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_up_.fd(), &one, sizeof one);
}

// Marks the object as running and returns it. Returns null if the object is no longer watched.
std::shared_ptr<Watched> Watch::enter(uint64_t number)
{
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(number);
    if (found == entries_.end()) return nullptr;
    running_ = number;
    return found->second.what;
}

void Watch::leave(std::shared_ptr<Watched> what)
{
    what.reset();  // perhaps the last reference: the object ends while the removing thread waits
    const std::lock_guard lock(mutex_);
    running_ = kWakeUp;
    ++turns_;
    left_.notify_all();
}

void Watch::call_ready(const epoll_event &event)
{
    std::shared_ptr<Watched> what = enter(event.data.u64);
    if (!what) return;
    what->on_ready(event.events);
    leave(std::move(what));
}

// Returns the number of an object whose time has come, with its delay, and sets its next time. Returns kWakeUp if
// there is no such object.
uint64_t Watch::take_due(Clock::time_point now, double *late_s)
{
    const std::lock_guard lock(mutex_);
    for (auto &[number, entry] : entries_) {
        if (entry.tick.count() == 0 || entry.due > now) continue;
        *late_s = std::chrono::duration<double>(now - entry.due).count();
        entry.due = now + entry.tick;
        return number;
    }
    return kWakeUp;
}

void Watch::call_due()
{
    const Clock::time_point now = Clock::now();
    double late_s = 0;
    while (const uint64_t number = take_due(now, &late_s)) {
        std::shared_ptr<Watched> what = enter(number);
        if (!what) continue;
        what->on_tick(late_s);
        leave(std::move(what));
    }
}

int Watch::ms_until_due()
{
    const std::lock_guard lock(mutex_);
    Clock::time_point first = Clock::time_point::max();
    for (const auto &[number, entry] : entries_)
        if (entry.tick.count() != 0) first = std::min(first, entry.due);
    if (first == Clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now());
    return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000));
}

void Watch::run()
{
    thread_.store(std::this_thread::get_id());
    pthread_setname_np(pthread_self(), "yoke-watch");
    for (;;) {
        epoll_event events[64];
        const int count = epoll_wait(epoll_.fd(), events, 64, ms_until_due());
        for (int i = 0; i < count; ++i) {
            uint64_t woken = 0;
            if (events[i].data.u64 != kWakeUp)
                call_ready(events[i]);
            else if (read(wake_up_.fd(), &woken, sizeof woken) < 0)
                continue;
        }
        call_due();  // after the events, so an ended pause does not count as missed heartbeats
    }
}

std::atomic<Watch *> current{nullptr};

// Forgets the parent's watch in a forked child, but does not destroy it: threads that do not exist in the child may
// hold its locks.
void forget_watch_in_child()
{
    current.store(nullptr);
}

Watch &the_watch()
{
    if (Watch *known = current.load(std::memory_order_acquire)) return *known;
    on_fork_child(forget_watch_in_child);
    return make_once(current, [] { return new Watch; });
}

}  // namespace

uint64_t watch(const std::shared_ptr<Watched> &what, int fd, uint32_t events, double tick_s)
{
    return the_watch().add(what, fd, events, tick_s);
}

void rewatch(uint64_t number, uint32_t events) noexcept
{
    if (Watch *known = current.load()) known->change(number, events);
}

void unwatch(uint64_t number) noexcept
{
    Watch *known = current.load();
    if (known && number) known->remove(number);
}

void settle_watch() noexcept
{
    if (Watch *known = current.load()) known->settle();
}

bool is_watch_thread() noexcept
{
    const Watch *known = current.load();
    return known && known->is_own_thread();
}

}  // namespace yoke
