// in_use.h: memory of calls under way, in all groups, and the check for foreign writes.
//
// A call's write increases the version of a whole storage. Calls behind this call in the same group do not count it
// as a foreign write. Calls of any group on other parts of the storage do not count it either.
#pragma once

#include "core/tensor/footprint.h"

#include <atomic>
#include <list>
#include <optional>

namespace yoke {

class InUse {
public:
    InUse() = default;
    // Watches the tensors from now on. Calls with the same non-null `order` run in sequence, and each works on the
    // results of earlier calls. Either tensor may be absent.
    InUse(const Tensor &in, const Tensor &out, const void *order);
    ~InUse() { end(); }
    InUse(InUse &&other) noexcept : entry_(std::exchange(other.entry_, std::nullopt)) {}
    InUse &operator=(InUse &&other) noexcept
    {
        end();
        entry_ = std::exchange(other.entry_, std::nullopt);
        return *this;
    }
    InUse(const InUse &) = delete;
    InUse &operator=(const InUse &) = delete;

    // Raises YOKE_E_STATE if another writer has written a tensor since, and names the writer. The tensors must still
    // live.
    void check(const char *call) const;

    // Ends the watch of a call that has written the tensor, after a check. Increases the tensor's version, also for
    // calls that may ignore this write.
    void end_written(const yoke_tensor &tensor, const void *order, const char *call) noexcept;

    // Keeps the name of the result's last writer for `check`, just before the call's own write replaces the name.
    void note_former_writer() noexcept;
    // Notes that the call has written its result, once, in the scope of a Writing. From now on `check` looks only at
    // the result. The expected version is the version of the last check plus 1. So a foreign write between this check
    // and the Writing is found too.
    void note_own_write() noexcept;

    // Scope in which a call of this order writes the tensor once, after its check. The write itself increases the
    // version.
    class Writing {
    public:
        Writing(const yoke_tensor &tensor, const void *order);
        ~Writing();
        Writing(const Writing &) = delete;
        Writing &operator=(const Writing &) = delete;
        // Returns whether a Writing of the storage is open. The caller holds the lock.
        static bool is_amid(const Storage &storage) noexcept;

    private:
        const Storage &storage_;
        const Footprint footprint_;
        const void *const order_;
        uint32_t before_ = 0;
        Writing *next_ = nullptr;  // list of active writers
    };

    struct Entry {
        struct Use {
            const Storage *storage = nullptr;
            Footprint footprint{};
            std::atomic<uint32_t> version{0};
        };
        Use uses[2];
        const void *order = nullptr;
        const char *former_writer = nullptr, *own_writer = nullptr;  // writers of the result
    };

private:
    void end() noexcept;
    static Entry::Use &result_of(Entry &entry) noexcept;
    static bool is_untouched(const Entry::Use &use);
    static void carry(const Storage &storage, const Footprint &footprint, const void *order,
                      uint32_t before) noexcept;

    std::optional<std::list<Entry>::iterator> entry_;
};

}  // namespace yoke
