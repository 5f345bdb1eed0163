// hollow.h: a device without memory: a backend table whose blocks, chunks and streams are only bookkeeping.
//
// Benchmarks and tests of the allocator run over a hollow device. Its capacity may exceed every machine's memory.
// Streams and events run in an order chosen by the test, and any entry fails at a call chosen by the test. No byte
// behind an address may be touched.
#pragma once

#include "core/backend/backend.h"
#include "core/memory/hollow_memory.h"
#include "core/memory/hollow_work.h"

#include <array>
#include <mutex>

namespace yoke {

// Entries that are counted and can be made to fail.
#define YOKE_HOLLOW_ENTRIES(X) \
    X(device_synchronize)      \
    X(alloc)                   \
    X(free)                    \
    X(mem_info)                \
    X(host_alloc)              \
    X(host_free)               \
    X(vmm_granularity)         \
    X(vmm_reserve)             \
    X(vmm_release)             \
    X(vmm_create)              \
    X(vmm_destroy)             \
    X(vmm_map)                 \
    X(vmm_unmap)               \
    X(stream_create)           \
    X(stream_destroy)          \
    X(stream_synchronize)      \
    X(stream_query)            \
    X(event_create)            \
    X(event_destroy)           \
    X(event_record)            \
    X(event_wait)              \
    X(event_query)             \
    X(event_synchronize)       \
    X(copy)                    \
    X(fill)

enum class HollowEntry {
#define YOKE_HOLLOW_NAME(name) name,
    YOKE_HOLLOW_ENTRIES(YOKE_HOLLOW_NAME)
#undef YOKE_HOLLOW_NAME
        count
};

// Observer of a hollow device. The device calls it in the order of events, with the device's lock held.
class HollowWatcher {
public:
    virtual ~HollowWatcher() = default;
    // Report bytes that become usable, and bytes that become unusable: work using these bytes has ended, or should
    // have.
    virtual void on_backed(uint64_t, uint64_t) {}
    virtual void on_gone(uint64_t, uint64_t) {}
    virtual void on_use(const void * /*stream*/, uint64_t /*address*/, uint64_t /*bytes*/) {}
    virtual void on_record(const void * /*event*/, const void * /*stream*/) {}
    virtual void on_wait(const void * /*event*/, const void * /*stream*/) {}
    // Report that the caller has seen the end of the work before an event, of a stream, or of the device.
    virtual void on_seen_event(const void *) {}
    virtual void on_seen_stream(const void *) {}
    virtual void on_seen_device() {}
};

struct HollowOptions {
    uint64_t capacity = uint64_t{16} << 30;
    uint64_t unit = uint64_t{2} << 20;  // the granularity of virtual memory
    uint32_t alignment = 512;
    bool has_virtual_memory = true;
    bool runs_at_once =
        true;  // else work waits for HollowWork's run_step, or for a wait of the caller
};

class Hollow {
public:
    explicit Hollow(const HollowOptions &options = {});
    Hollow(const Hollow &) = delete;
    Hollow &operator=(const Hollow &) = delete;

    // Returns the backend's table. The table and the only device live as long as this object.
    const yoke_backend &table() const { return table_; }
    void *handle() { return this; }

    void watch(HollowWatcher *watcher) { watcher_ = watcher; }  // null: none
    // Gives a stream work on some bytes, as a kernel would.
    void use(void *stream, uint64_t address, uint64_t bytes);

    // Makes the entry fail at its nth call from now on (1: the next call); later calls succeed again. A failing wait
    // still waits, and a failing free still frees, as in CUDA, where such calls report errors of earlier work.
    void fail_at(HollowEntry entry, int64_t nth, yoke_status status);
    int64_t calls(HollowEntry entry) const { return calls_[static_cast<size_t>(entry)]; }
    int64_t calls() const;  // calls of all entries

    // Runs f while no thread is in an entry.
    template <class F>
    void with_lock(const F &f)
    {
        const std::lock_guard lock(mutex_);
        f();
    }
    // Return the device's memory and work. While another thread may call an entry, the caller uses these in
    // with_lock().
    HollowMemory &memory() { return memory_; }
    HollowWork &work() { return work_; }

private:
    friend struct HollowEntries;
    struct Failure {
        int64_t calls_left = 0;  // 0: none is planned
        yoke_status status = YOKE_OK;
    };

    const HollowOptions options_;
    yoke_backend table_{};
    std::mutex mutex_;
    HollowMemory memory_;
    HollowWork work_;
    HollowWatcher *watcher_ = nullptr;
    std::array<int64_t, static_cast<size_t>(HollowEntry::count)> calls_{};
    std::array<Failure, static_cast<size_t>(HollowEntry::count)> failures_{};
};

}  // namespace yoke
