#include "core/comm/in_use.h"

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"

#include <condition_variable>
#include <memory>
#include <mutex>

namespace yoke {

namespace {

struct Registry {
    Mutex mutex{LockRank::kOther};
    std::condition_variable_any changed;
    std::list<InUse::Entry> live, spare;  // spare entries save an allocation per call
    InUse::Writing *writing = nullptr;
    int waiting = 0;  // threads that wait for a Writing
};
Registry &registry = immortal<Registry>();

uint32_t version_now(const Storage &storage) noexcept
{
    return storage.version.load(std::memory_order_relaxed);
}

void begin(InUse::Entry::Use &use, const Tensor &tensor) noexcept
{
    use.storage = tensor.present() ? tensor->storage.get() : nullptr;
    if (!use.storage) return;
    std::construct_at(&use.footprint, *tensor);  // without a copy of unused axes
    use.version.store(version_now(*use.storage), std::memory_order_relaxed);
}

}  // namespace

InUse::InUse(const Tensor &in, const Tensor &out, const void *order)
{
    if (!in.present() && !out.present()) return;
    const std::lock_guard lock(registry.mutex);
    if (registry.spare.empty()) registry.spare.emplace_front();
    entry_ = registry.spare.begin();
    Entry &entry = **entry_;
    entry.order = order;
    entry.former_writer = entry.own_writer = nullptr;
    begin(entry.uses[0], in);
    begin(entry.uses[1], in.get() == out.get() ? Tensor() : out);
    registry.live.splice(registry.live.begin(), registry.spare, *entry_);
}

void InUse::end() noexcept
{
    if (!entry_) return;
    const std::lock_guard lock(registry.mutex);
    registry.spare.splice(registry.spare.begin(), registry.live,
                          *std::exchange(entry_, std::nullopt));
}

bool InUse::Writing::is_amid(const Storage &storage) noexcept
{
    for (const Writing *each = registry.writing; each; each = each->next_)
        if (&each->storage_ == &storage) return true;
    return false;
}

namespace {

// Waits until no Writing of the storage is open. The lock is open during the wait.
void await_turn(std::unique_lock<Mutex> &lock, const Storage &storage)
{
    if (!registry.writing) [[likely]]
        return;
    ++registry.waiting;
    registry.changed.wait(lock, [&] { return !InUse::Writing::is_amid(storage); });
    --registry.waiting;
}

}  // namespace

// Increases the known version of calls on other parts of the storage, and of later calls with the same `order`. So
// these calls do not take this call's write for a foreign write.
void InUse::carry(const Storage &storage, const Footprint &footprint, const void *order,
                  uint32_t before) noexcept
{
    for (Entry &entry : registry.live)
        for (Entry::Use &use : entry.uses) {
            const bool is_behind = order && entry.order == order;
            if (use.storage == &storage && use.version == before &&
                (is_behind || !use.footprint.meets(footprint)))
                use.version = before + 1;
        }
}

void InUse::end_written(const yoke_tensor &tensor, const void *order, const char *call) noexcept
{
    std::unique_lock lock(registry.mutex);
    await_turn(lock, *tensor.storage);
    if (entry_)
        registry.spare.splice(registry.spare.begin(), registry.live,
                              *std::exchange(entry_, std::nullopt));
    const uint32_t before = version_now(*tensor.storage);
    tensor.storage->note_written(call);
    if (!registry.live.empty()) carry(*tensor.storage, Footprint(tensor), order, before);
}

InUse::Entry::Use &InUse::result_of(Entry &entry) noexcept
{
    return entry.uses[entry.uses[1].storage ? 1 : 0];
}

void InUse::note_former_writer() noexcept
{
    if (!entry_) return;
    const std::lock_guard lock(registry.mutex);
    if (const Storage *result = result_of(**entry_).storage)
        (*entry_)->former_writer = result->last_writer();
}

void InUse::note_own_write() noexcept
{
    if (!entry_) return;
    const std::lock_guard lock(registry.mutex);
    Entry &entry = **entry_;
    Entry::Use &result = result_of(entry);
    if (entry.uses[1].storage) entry.uses[0].storage = nullptr;
    result.version.fetch_add(1, std::memory_order_relaxed);
    if (result.storage) entry.own_writer = result.storage->last_writer();
}

// Returns whether the storage still has the version that the call knows; true without a storage. If the version
// differs, waits until no other call is writing, and looks again.
bool InUse::is_untouched(const Entry::Use &use)
{
    const auto is_as_known = [&] {
        return version_now(*use.storage) == use.version.load(std::memory_order_relaxed);
    };
    if (!use.storage || is_as_known()) return true;
    std::unique_lock lock(registry.mutex);
    await_turn(lock, *use.storage);
    return is_as_known();
}

void InUse::check(const char *call) const
{
    if (!entry_) return;
    for (const Entry::Use &use : (*entry_)->uses) {
        if (is_untouched(use)) continue;
        const Entry &entry = **entry_;
        const char *writer = use.storage->last_writer();
        if (writer && writer == entry.own_writer) writer = entry.former_writer;
        fail_in(
            call, YOKE_E_STATE,
            "%s wrote a tensor of this call while the call was running, so the result is undefined; wait for the work first",
            writer ? writer : "the host");
    }
}

InUse::Writing::Writing(const yoke_tensor &tensor, const void *order)
    : storage_(*tensor.storage), footprint_(tensor), order_(order)
{
    std::unique_lock lock(registry.mutex);
    await_turn(lock, storage_);
    before_ = version_now(storage_);
    next_ = std::exchange(registry.writing, this);
}

InUse::Writing::~Writing()
{
    const std::lock_guard lock(registry.mutex);
    Writing **at = &registry.writing;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
    if (registry.waiting) registry.changed.notify_all();
    if (version_now(storage_) != before_) carry(storage_, footprint_, order_, before_);
}

}  // namespace yoke
