#include "core/comm/late/let_go.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/start_thread.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

namespace yoke {

namespace {

struct Left {
    std::vector<Ref<Storage>> storages;
    Ref<Fence> behind;

    bool is_due() const noexcept
    {
        try {
            return !behind.present() || is_reached(*behind);
        } catch (const std::exception &) {  // the device is lost: the memory stays
            return false;
        }
    }
};
struct LettingGo {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Left> left;
    pid_t process = 0;  // process with the thread
    bool is_stopped = false;
};
LettingGo &letting_go = immortal<LettingGo>();

void let_go_in_turn() noexcept
{
    constexpr std::chrono::milliseconds kBetween{20};
    std::vector<Left> mine;  // not due yet
    std::unique_lock lock(letting_go.mutex);
    while (!letting_go.is_stopped) {
        const auto has_news = [] { return !letting_go.left.empty() || letting_go.is_stopped; };
        if (mine.empty())
            letting_go.changed.wait(lock, has_news);
        else
            letting_go.changed.wait_for(lock, kBetween, has_news);
        if (letting_go.is_stopped) break;
        std::vector<Left> news = std::exchange(letting_go.left, {});
        lock.unlock();
        try {
            std::ranges::move(news, std::back_inserter(mine));
        } catch (const std::bad_alloc &) {
            new (std::nothrow) std::vector<Left>(std::move(news));  // kept: a device may use it
        }
        std::erase_if(mine, [](const Left &each) { return each.is_due(); });
        lock.lock();
    }
    letting_go.process = 0;
    letting_go.changed.notify_all();
    lock.unlock();
    new std::vector<Left>(std::move(mine));  // the exit waits for no device
}

// Makes the thread, if this process has none and the exit has not begun. The caller holds the lock.
void begin_thread() noexcept
{
    if (letting_go.process == getpid() || letting_go.is_stopped) return;
    if (start_detached_thread(let_go_in_turn).empty()) letting_go.process = getpid();
}

}  // namespace

void begin_letting_go() noexcept
{
    const std::lock_guard lock(letting_go.mutex);
    begin_thread();
}

void let_go_of(std::vector<Ref<Storage>> storages, Ref<Fence> behind) noexcept
try {
    if (!behind.present())  // other holders go on, for example of buckets
        std::erase_if(storages, [](Ref<Storage> &each) {
            const bool is_let_go = each->release_unless_last();
            if (is_let_go) (void)each.detach();
            return is_let_go;
        });
    if (storages.empty()) return;
    const std::lock_guard lock(letting_go.mutex);
    letting_go.left.push_back({std::move(storages), std::move(behind)});
    begin_thread();
    letting_go.changed.notify_all();
} catch (const std::bad_alloc &) {  // the storages are released here
}

void stop_letting_go() noexcept
{
    constexpr std::chrono::milliseconds kToEnd{100};
    if (is_forked_child()) return;
    std::unique_lock lock(letting_go.mutex);
    letting_go.is_stopped = true;
    letting_go.changed.notify_all();
    letting_go.changed.wait_for(lock, kToEnd, [] { return letting_go.process != getpid(); });
}

}  // namespace yoke
