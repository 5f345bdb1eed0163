#include "core/memory/counters.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>

namespace yoke {

// ---- accounts --------------------------------------------------------------------------------------

bool MemoryCounters::join(Account &account) noexcept
{
    try {
        accounts_.push_back(&account);
    } catch (const std::bad_alloc &) {
        return false;
    }
    account.epoch = epoch_;
    if (accounts_.size() == 1 || is_shared_) return true;
    // The first thread may not count for long, so this call publishes the first thread's bytes.
    int64_t bytes = now_.of[kAllPools].bytes;
    for (Account *each : accounts_) {
        if (each == &account) continue;
        raise_peaks(reached_by(*each));
        const int64_t now = each->now[kSmallPool].read().bytes + each->now[kLargePool].read().bytes;
        each->assumed = now - each->published;
        bytes += now;
    }
    is_shared_ = true;
    published_ = bytes;
    published_peak_ = published_.load();
    version_.fetch_add(1, std::memory_order_release);
    return true;
}

bool MemoryCounters::prepare(Account *own) noexcept
{
    if (!own) return false;
    const std::lock_guard lock(mutex_);
    if (own->seen == 0 && !join(*own)) return false;
    tell_held(*own);
    return true;
}

// Returns the highest amounts reached with this account, on top of the published sums. While several threads count,
// returns the present amounts of all: the threads reach their peaks at different times, so peaks cannot be added up.
MemoryCounters::Sums MemoryCounters::reached_by(const Account &account) const noexcept
{
    if (is_shared_) return sum_now();
    Sums reached = now_;
    const Amounts small = account.now[kSmallPool].read(), large = account.now[kLargePool].read();
    const bool is_new = account.epoch == epoch_;
    reached.of[kSmallPool] += is_new ? account.most[kSmallPool].read() : small;
    reached.of[kLargePool] += is_new ? account.most[kLargePool].read() : large;
    reached.of[kAllPools] += is_new ? account.most[kAllPools].read() : small + large;
    return reached;
}

void MemoryCounters::raise_peaks(const Sums &reached) noexcept
{
    peak_.raise_to(reached);
    lap_peak_ = std::max(lap_peak_, reached.of[kAllPools].bytes);
    Sums active = reached;
    for (int i = 0; i < 3; ++i) active.of[i] += waiting_.of[i];
    active_peak_.raise_to(active);
}

void MemoryCounters::raise_bytes(int64_t reached) noexcept
{
    if (!is_shared_) return;
    const auto raise_to = [&](int64_t &peak, int64_t most) { peak = std::max(peak, most); };
    raise_to(peak_.of[kAllPools].bytes, reached);
    raise_to(lap_peak_, reached);
    raise_to(active_peak_.of[kAllPools].bytes, reached + waiting_.of[kAllPools].bytes);
}

// Returns the part of a published sum that certainly existed: each of the other threads may have freed kApart without
// publishing.
int64_t MemoryCounters::sure_of(int64_t published) const noexcept
{
    const auto others = static_cast<int64_t>(std::max<size_t>(accounts_.size(), 1) - 1);
    return published - kApart * others;
}

void MemoryCounters::tell_held(Account &account) noexcept
{
    raise_peaks(reached_by(account));
    Amounts now[2], freed[2];
    for (int pool : {kSmallPool, kLargePool}) {
        now[pool] = account.now[pool].read();
        freed[pool] = account.freed[pool].read();
        account.now[pool].write({});
        account.freed[pool].write({});
    }
    if (is_shared_)
        published_ +=
            now[kSmallPool].bytes + now[kLargePool].bytes - account.published - account.assumed;
    account.published = 0;
    account.assumed = 0;
    now_.add(now);
    gone_.add(freed);
    for (Account::Numbers &most : account.most) most.write({});
    account.limit = is_shared_ ? kApart : std::numeric_limits<int64_t>::max();
    account.epoch = epoch_;
    account.seen = version_.load(std::memory_order_relaxed);
}

void MemoryCounters::tell(Account &account) noexcept
{
    const std::lock_guard lock(mutex_);
    tell_held(account);
}

void MemoryCounters::close(Account &account) noexcept
{
    if (account.seen == 0) return;
    const std::lock_guard lock(mutex_);
    tell_held(account);
    raise_bytes(sure_of(
        published_peak_.exchange(published_)));  // while the account counts among the others
    std::erase(accounts_, &account);
    account.seen = 0;
    if (!is_shared_ || accounts_.size() > 1) return;
    fold();  // the remaining thread looks at its account before it counts again
    is_shared_ = false;
}

MemoryCounters::Sums MemoryCounters::sum_now() const noexcept
{
    Sums sum = now_;
    for (const Account *account : accounts_) {
        const Amounts now[2] = {account->now[kSmallPool].read(), account->now[kLargePool].read()};
        sum.add(now);
    }
    return sum;
}

void MemoryCounters::fold() noexcept
{
    for (const Account *account : accounts_) raise_peaks(reached_by(*account));
    raise_bytes(sure_of(published_peak_.exchange(published_)));
    ++epoch_;
    version_.fetch_add(1, std::memory_order_release);
}

// ---- counting --------------------------------------------------------------------------------------

void MemoryCounters::count_shared(Pool pool, const Amounts &block, bool is_alloc) noexcept
{
    const std::lock_guard lock(mutex_);
    fold();  // the accounts reached their amounts without this block
    Amounts blocks[2];
    blocks[pool] = is_alloc ? block : -block;
    now_.add(blocks);
    if (is_shared_) published_ += blocks[pool].bytes;
    if (is_alloc) return raise_peaks(sum_now());
    blocks[pool] = block;
    gone_.add(blocks);
}

void MemoryCounters::count_waiting(Pool pool, const Amounts &blocks) noexcept
{
    const std::lock_guard lock(mutex_);
    fold();
    Amounts pools[2];
    pools[pool] = blocks;
    waiting_.add(pools);
    raise_peaks(sum_now());  // several threads: perhaps no account has shown the block yet
}

void MemoryCounters::count_reserved(Pool pool, int64_t pieces, int64_t bytes) noexcept
{
    const std::lock_guard lock(mutex_);
    Amounts pools[2];
    pools[pool] = {pieces, bytes, 0};
    reserved_.add(pools);
    reserved_peak_.raise_to(reserved_);
    if (bytes < 0) pools[pool] = -pools[pool];
    (bytes < 0 ? reserved_gone_ : reserved_came_).add(pools);
}

void MemoryCounters::count_small(int64_t pieces, int64_t bytes) noexcept
{
    const std::lock_guard lock(mutex_);
    const Amounts moved{pieces, bytes, 0};
    reserved_.of[kSmallPool] += moved;
    reserved_.of[kLargePool] += -moved;
    reserved_peak_.raise_to(reserved_);
    const bool away = bytes < 0;
    const Amounts amount = away ? -moved : moved;
    reserved_came_.of[away ? kLargePool : kSmallPool] += amount;
    reserved_gone_.of[away ? kSmallPool : kLargePool] += amount;
}

void MemoryCounters::count_foreign(int64_t bytes) noexcept
{
    count_reserved(kLargePool, 0, bytes);
    const Amounts amount{0, std::abs(bytes), std::abs(bytes)};
    count_shared(kLargePool, amount, bytes > 0);
    const std::lock_guard lock(mutex_);
    foreign_ += bytes;
}

// ---- reading ---------------------------------------------------------------------------------------

PoolStats MemoryCounters::collect(const Sums &waiting, const Sums &known_peak) const noexcept
{
    Sums now = sum_now(), peak = known_peak, gone = gone_;
    const auto raise = [&](Sums reached) {
        for (int i = 0; i < 3; ++i) reached.of[i] += waiting.of[i];
        peak.raise_to(reached);
    };
    if (is_shared_) {
        Sums reached;
        reached.of[kAllPools].bytes = sure_of(published_peak_);
        raise(reached);
    }
    for (const Account *account : accounts_) {
        raise(reached_by(*account));
        const Amounts freed[2] = {account->freed[kSmallPool].read(),
                                  account->freed[kLargePool].read()};
        gone.add(freed);
    }
    PoolStats stats;
    for (int i = 0; i < 3; ++i) {
        stats.now[i] = now.of[i] + waiting.of[i];
        stats.peak[i] = peak.of[i];
        stats.gone[i] = gone.of[i] + -gone_before_.of[i];
        stats.came[i] = now.of[i] + gone.of[i] + -came_before_.of[i];
    }
    return stats;
}

PoolStats MemoryCounters::blocks() const noexcept
{
    const std::lock_guard lock(mutex_);
    return collect({}, peak_);
}

PoolStats MemoryCounters::active() const noexcept
{
    const std::lock_guard lock(mutex_);
    PoolStats stats = collect(waiting_, active_peak_);
    for (int i = 0; i < 3; ++i) stats.gone[i] += waiting_before_.of[i] + -waiting_.of[i];
    return stats;
}

PoolStats MemoryCounters::reserved() const noexcept
{
    const std::lock_guard lock(mutex_);
    PoolStats stats;
    for (int i = 0; i < 3; ++i) {
        stats.now[i] = reserved_.of[i];
        stats.peak[i] = reserved_peak_.of[i];
        stats.came[i] = reserved_came_.of[i];
        stats.gone[i] = reserved_gone_.of[i];
    }
    return stats;
}

MemoryStats MemoryCounters::read() const noexcept
{
    const std::lock_guard lock(mutex_);
    const PoolStats own = collect({}, peak_);
    return {own.now[kAllPools].bytes, own.peak[kAllPools].bytes, reserved_.of[kAllPools].bytes,
            reserved_peak_.of[kAllPools].bytes};
}

int64_t MemoryCounters::foreign() const noexcept
{
    const std::lock_guard lock(mutex_);
    return foreign_;
}

PoolStats MemoryCounters::look_at_split(const Amounts (&now)[3]) noexcept
{
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < 3; ++i) {
        const Amounts change = now[i] + -split_.now[i];
        split_.now[i] = now[i];
        split_.peak[i].raise_to(now[i]);
        for (const auto member : {&Amounts::count, &Amounts::bytes}) {
            const int64_t by = change.*member;
            Amounts &total = by > 0 ? split_.came[i] : split_.gone[i];
            total.*member += std::abs(by);
        }
    }
    return split_;
}

void MemoryCounters::reset_peaks() noexcept
{
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < 3; ++i) split_.peak[i] = split_.now[i];
    fold();
    peak_ = active_peak_ = sum_now();
    for (int i = 0; i < 3; ++i) active_peak_.of[i] += waiting_.of[i];
    reserved_peak_ = reserved_;
}

void MemoryCounters::reset_totals() noexcept
{
    const std::lock_guard lock(mutex_);
    const PoolStats present = collect({}, peak_);
    for (int i = 0; i < 3; ++i) {
        gone_before_.of[i] += present.gone[i];
        came_before_.of[i] += present.came[i];
    }
    waiting_before_ = waiting_;
    reserved_came_ = reserved_gone_ = Sums();
    for (int i = 0; i < 3; ++i) split_.came[i] = split_.gone[i] = {};
    for (std::atomic<int64_t> &event : events_) event.store(0, std::memory_order_relaxed);
}

int64_t MemoryCounters::lap() noexcept
{
    const std::lock_guard lock(mutex_);
    fold();
    const int64_t most = lap_peak_;
    lap_peak_ = sum_now().of[kAllPools].bytes;
    return most;
}

}  // namespace yoke
