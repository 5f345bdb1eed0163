#include "core/memory/hollow.h"

#include "core/backend/ops.inc"
#include "core/base/error.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>

namespace yoke {

namespace {

constexpr const char *kEntryNames[] = {
#define YOKE_HOLLOW_NAME(name) #name,
    YOKE_HOLLOW_ENTRIES(YOKE_HOLLOW_NAME)
#undef YOKE_HOLLOW_NAME
};

uint64_t number_of(const void *address)
{
    return reinterpret_cast<uintptr_t>(address);
}

void *pointer_of(uint64_t address)
{
    return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
}

}  // namespace

// The entries of the table; `device` is the Hollow.
struct HollowEntries {
    using Entry = HollowEntry;

    static yoke_status fail(yoke_status status, Entry entry, const std::string &why)
    {
        const std::string text =
            std::string("hollow: ") + kEntryNames[static_cast<size_t>(entry)] + ": " + why;
        return set_backend_error(status, 0, text.c_str());
    }

    // Returns whether an entry does its work although it fails: in CUDA such calls report failures of earlier work.
    static bool works_though_it_fails(Entry entry)
    {
        switch (entry) {
            case Entry::device_synchronize:
            case Entry::stream_synchronize:
            case Entry::event_synchronize:
            case Entry::free:
            case Entry::host_free:
            case Entry::vmm_release:
            case Entry::vmm_destroy:
            case Entry::stream_destroy:
            case Entry::event_destroy:
                return true;
            default:
                return false;
        }
    }

    // Counts a call and runs its body under the lock. If fail_at() planned a failure, returns the planned status; the
    // body then runs only if works_though_it_fails().
    template <class Body>
    static yoke_status call(void *device, Entry entry, Body &&body)
    {
        Hollow &self = *static_cast<Hollow *>(device);
        const std::lock_guard lock(self.mutex_);
        ++self.calls_[static_cast<size_t>(entry)];
        Hollow::Failure &failure = self.failures_[static_cast<size_t>(entry)];
        const bool fails = failure.calls_left > 0 && --failure.calls_left == 0;
        const yoke_status status = fails && !works_though_it_fails(entry) ? YOKE_OK : body(self);
        return fails ? fail(failure.status, entry, "the test makes this call fail") : status;
    }

    // Returns YOKE_OK for an empty reason; else YOKE_E_OOM after a shortage, YOKE_E_VALUE otherwise.
    static yoke_status told(const Hollow &self, Entry entry, const std::string &why)
    {
        if (why.empty()) return YOKE_OK;
        return fail(self.memory_.is_short() ? YOKE_E_OOM : YOKE_E_VALUE, entry, why);
    }

    static void give(Hollow &self, void *stream)
    {
        if (!self.options_.runs_at_once) self.work_.give(stream);
    }

    static yoke_status device_count(int32_t *count)
    {
        *count = 0;  // each is made by its owner
        return YOKE_OK;
    }
    static void why_unavailable(char *text, uint64_t capacity)
    {
        snprintf(text, capacity, "a program creates hollow devices; none is found on a machine");
    }
    static yoke_status device_open(int32_t, void **)
    {
        return set_backend_error(YOKE_E_UNAVAILABLE, 0, "hollow: the owner creates the device");
    }
    static void device_close(void *) {}
    static yoke_status device_info(void *device, yoke_backend_device_info *info)
    {
        const Hollow &self = *static_cast<Hollow *>(device);
        snprintf(info->name, sizeof info->name, "a hollow device");
        info->total_memory = self.memory_.capacity();
        info->alignment = self.options_.alignment;
        return YOKE_OK;
    }
    static const char *build_info() { return "hollow"; }
    static void after_fork() {}

    static yoke_status device_synchronize(void *device)
    {
        return call(device, Entry::device_synchronize, [](Hollow &self) {
            self.work_.finish();
            if (self.watcher_) self.watcher_->on_seen_device();
            return YOKE_OK;
        });
    }

    // ---- memory ----

    static yoke_status alloc(void *device, uint64_t bytes, void **pointer)
    {
        return call(device, Entry::alloc, [&](Hollow &self) {
            uint64_t address = 0;
            const std::string why = self.memory_.alloc(bytes, &address);
            if (!why.empty()) return told(self, Entry::alloc, why);
            *pointer = pointer_of(address);
            if (self.watcher_) self.watcher_->on_backed(address, bytes);
            return YOKE_OK;
        });
    }
    static yoke_status free(void *device, void *pointer, uint64_t bytes)
    {
        return call(device, Entry::free, [&](Hollow &self) {
            if (self.watcher_) self.watcher_->on_gone(number_of(pointer), bytes);
            return told(self, Entry::free, self.memory_.free(number_of(pointer), bytes));
        });
    }
    static yoke_status mem_info(void *device, uint64_t *free_bytes, uint64_t *total)
    {
        return call(device, Entry::mem_info, [&](Hollow &self) {
            *total = self.memory_.capacity();
            *free_bytes = *total - self.memory_.used();
            return YOKE_OK;
        });
    }
    // Allocates real host memory, since a host program may touch pinned memory.
    static yoke_status host_alloc(void *device, uint64_t bytes, void **pointer)
    {
        return call(device, Entry::host_alloc, [&](Hollow &) {
            void *found = malloc(bytes);
            if (!found) return fail(YOKE_E_OOM, Entry::host_alloc, "no host memory");
            *pointer = found;
            return YOKE_OK;
        });
    }
    static yoke_status host_free(void *device, void *pointer, uint64_t)
    {
        return call(device, Entry::host_free, [&](Hollow &) {
            ::free(pointer);
            return YOKE_OK;
        });
    }
    static yoke_status vmm_granularity(void *device, uint64_t *bytes)
    {
        return call(device, Entry::vmm_granularity, [&](Hollow &self) {
            *bytes = self.memory_.unit();
            return YOKE_OK;
        });
    }
    static yoke_status vmm_reserve(void *device, uint64_t bytes, void **address)
    {
        return call(device, Entry::vmm_reserve, [&](Hollow &self) {
            uint64_t found = 0;
            const std::string why = self.memory_.reserve(bytes, &found);
            if (why.empty()) *address = pointer_of(found);
            return told(self, Entry::vmm_reserve, why);
        });
    }
    static yoke_status vmm_release(void *device, void *address, uint64_t bytes)
    {
        return call(device, Entry::vmm_release, [&](Hollow &self) {
            return told(self, Entry::vmm_release, self.memory_.release(number_of(address), bytes));
        });
    }
    static yoke_status vmm_create(void *device, uint64_t bytes, uint64_t *chunk)
    {
        return call(device, Entry::vmm_create, [&](Hollow &self) {
            return told(self, Entry::vmm_create, self.memory_.create(bytes, chunk));
        });
    }
    static yoke_status vmm_destroy(void *device, uint64_t chunk)
    {
        return call(device, Entry::vmm_destroy, [&](Hollow &self) {
            return told(self, Entry::vmm_destroy, self.memory_.destroy(chunk));
        });
    }
    static yoke_status vmm_map(void *device, void *address, uint64_t bytes, uint64_t chunk)
    {
        return call(device, Entry::vmm_map, [&](Hollow &self) {
            const std::string why = self.memory_.map(number_of(address), bytes, chunk);
            if (why.empty() && self.watcher_) self.watcher_->on_backed(number_of(address), bytes);
            return told(self, Entry::vmm_map, why);
        });
    }
    static yoke_status vmm_unmap(void *device, void *address, uint64_t bytes)
    {
        return call(device, Entry::vmm_unmap, [&](Hollow &self) {
            if (self.watcher_) self.watcher_->on_gone(number_of(address), bytes);
            return told(self, Entry::vmm_unmap, self.memory_.unmap(number_of(address), bytes));
        });
    }

    // ---- streams and events ----

    static yoke_status stream_create(void *device, int32_t, void **stream)
    {
        return call(device, Entry::stream_create, [&](Hollow &self) {
            *stream = self.work_.make_stream();
            return YOKE_OK;
        });
    }
    template <class Body>
    static yoke_status on_stream(void *device, Entry entry, void *stream, Body &&body)
    {
        return call(device, entry, [&](Hollow &self) {
            if (!self.work_.has_stream(stream)) return fail(YOKE_E_CLOSED, entry, "no such stream");
            return body(self);
        });
    }
    template <class Body>
    static yoke_status on_event(void *device, Entry entry, void *event, Body &&body)
    {
        return call(device, entry, [&](Hollow &self) {
            if (!self.work_.has_event(event)) return fail(YOKE_E_CLOSED, entry, "no such event");
            return body(self);
        });
    }
    static yoke_status stream_destroy(void *device, void *stream)
    {
        return on_stream(device, Entry::stream_destroy, stream, [&](Hollow &self) {
            self.work_.finish_stream(stream);
            self.work_.drop_stream(stream);
            return YOKE_OK;
        });
    }
    static yoke_status stream_synchronize(void *device, void *stream)
    {
        return on_stream(device, Entry::stream_synchronize, stream, [&](Hollow &self) {
            self.work_.finish_stream(stream);
            if (self.watcher_) self.watcher_->on_seen_stream(stream);
            return YOKE_OK;
        });
    }
    static yoke_status stream_query(void *device, void *stream, int32_t *idle)
    {
        return on_stream(device, Entry::stream_query, stream, [&](Hollow &self) {
            *idle = self.work_.is_idle(stream);
            if (*idle && self.watcher_) self.watcher_->on_seen_stream(stream);
            return YOKE_OK;
        });
    }
    static yoke_status event_create(void *device, uint32_t, void **event)
    {
        return call(device, Entry::event_create, [&](Hollow &self) {
            *event = self.work_.make_event();
            return YOKE_OK;
        });
    }
    static yoke_status event_destroy(void *device, void *event)
    {
        return on_event(device, Entry::event_destroy, event, [&](Hollow &self) {
            self.work_.drop_event(event);
            return YOKE_OK;
        });
    }
    static yoke_status event_record(void *device, void *event, void *stream)
    {
        return on_event(device, Entry::event_record, event, [&](Hollow &self) {
            if (!self.work_.has_stream(stream))
                return fail(YOKE_E_CLOSED, Entry::event_record, "no such stream");
            self.work_.record(event, stream);
            if (self.watcher_) self.watcher_->on_record(event, stream);
            return YOKE_OK;
        });
    }
    static yoke_status event_wait(void *device, void *event, void *stream)
    {
        return on_event(device, Entry::event_wait, event, [&](Hollow &self) {
            if (!self.work_.has_stream(stream))
                return fail(YOKE_E_CLOSED, Entry::event_wait, "no such stream");
            self.work_.wait(event, stream);
            if (self.watcher_) self.watcher_->on_wait(event, stream);
            return YOKE_OK;
        });
    }
    static yoke_status event_query(void *device, void *event, int32_t *reached)
    {
        return on_event(device, Entry::event_query, event, [&](Hollow &self) {
            *reached = self.work_.is_reached(event);
            if (*reached && self.watcher_) self.watcher_->on_seen_event(event);
            return YOKE_OK;
        });
    }
    static yoke_status event_synchronize(void *device, void *event)
    {
        return on_event(device, Entry::event_synchronize, event, [&](Hollow &self) {
            self.work_.finish_event(event);
            if (self.watcher_) self.watcher_->on_seen_event(event);
            return YOKE_OK;
        });
    }
    // Returns YOKE_E_UNSUPPORTED, since no clock runs here.
    static yoke_status event_elapsed(void *, void *, void *, double *)
    {
        return set_backend_error(YOKE_E_UNSUPPORTED, 0, "hollow: events keep no time");
    }

    // ---- work ----

    static void use(Hollow &self, void *stream, const void *begin, uint64_t bytes)
    {
        const uint64_t address = number_of(begin);
        if (address < HollowMemory::kFirst) return;  // host memory
        if (self.watcher_) self.watcher_->on_use(stream, address, bytes);
    }
    static yoke_status copy(void *device, void *to, const void *from, uint64_t bytes, int32_t,
                            void *stream)
    {
        return on_stream(device, Entry::copy, stream, [&](Hollow &self) {
            give(self, stream);
            use(self, stream, to, bytes);
            use(self, stream, from, bytes);
            return YOKE_OK;
        });
    }
    static yoke_status fill(void *device, void *to, uint8_t, uint64_t bytes, void *stream)
    {
        return on_stream(device, Entry::fill, stream, [&](Hollow &self) {
            give(self, stream);
            use(self, stream, to, bytes);
            return YOKE_OK;
        });
    }
};

Hollow::Hollow(const HollowOptions &options)
    : options_(options), memory_(options.capacity, options.unit, options.alignment)
{
    table_.struct_size = sizeof table_;
    table_.abi = YOKE_BACKEND_ABI;
    table_.op_table_hash = YOKE_OP_TABLE_HASH;
    table_.kind = "hollow";
    table_.device_count = HollowEntries::device_count;
    table_.why_unavailable = HollowEntries::why_unavailable;
    table_.device_open = HollowEntries::device_open;
    table_.device_close = HollowEntries::device_close;
    table_.device_info = HollowEntries::device_info;
    table_.event_elapsed = HollowEntries::event_elapsed;
    table_.build_info = HollowEntries::build_info;
    table_.after_fork = HollowEntries::after_fork;
#define YOKE_HOLLOW_SET(name) table_.name = HollowEntries::name;
    YOKE_HOLLOW_ENTRIES(YOKE_HOLLOW_SET)
#undef YOKE_HOLLOW_SET
    if (options.has_virtual_memory) return;
    table_.vmm_granularity = nullptr;
    table_.vmm_reserve = nullptr;
    table_.vmm_release = nullptr;
    table_.vmm_create = nullptr;
    table_.vmm_destroy = nullptr;
    table_.vmm_map = nullptr;
    table_.vmm_unmap = nullptr;
}

void Hollow::use(void *stream, uint64_t address, uint64_t bytes)
{
    const std::lock_guard lock(mutex_);
    HollowEntries::give(*this, stream);
    HollowEntries::use(*this, stream, pointer_of(address), bytes);
}

void Hollow::fail_at(HollowEntry entry, int64_t nth, yoke_status status)
{
    const std::lock_guard lock(mutex_);
    failures_[static_cast<size_t>(entry)] = {nth, status};
}

int64_t Hollow::calls() const
{
    return std::accumulate(calls_.begin(), calls_.end(), int64_t{0});
}

}  // namespace yoke
