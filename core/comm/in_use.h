// in_use.h: the memory of calls that are under way, in all groups: whether somebody else has written it meanwhile.
//
// What a call writes steps the version of a whole storage. It is no write amid the calls that wait behind it in the
// same group, nor amid those of any group that are at other parts of that storage.
#pragma once

#include "core/tensor/footprint.h"

#include <atomic>
#include <list>
#include <optional>

namespace yoke {

class InUse {
public:
    InUse() = default;
    // From now on. Calls of one `order` that is not null run one after the other, and each works on what those before
    // it have written. Either tensor may be absent.
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

    // Raises YOKE_E_STATE where one of the tensors, which still live, was written since.
    void check(const char *call) const;

    // The end, after a check, of a call of that order which has written the tensor.
    void end_written(const yoke_tensor &tensor, const void *order, const char *call) noexcept;

    // Notes who wrote the result last, just before the call's own write, which replaces the name.
    void note_former_writer() noexcept;
    // Notes that the call has written its result, once, in the scope of a Writing. From here on `check` looks at the
    // result alone. The version it expects is the one of the last check and one more, so a write by somebody else
    // between that check and the Writing is found too.
    void note_own_write() noexcept;

    // In its scope a call of that order writes the tensor, after its check, by what steps the version itself, once.
    class Writing {
    public:
        Writing(const yoke_tensor &tensor, const void *order);
        ~Writing();
        Writing(const Writing &) = delete;
        Writing &operator=(const Writing &) = delete;
        // With the lock held.
        static bool is_amid(const Storage &storage) noexcept;

    private:
        const Storage &storage_;
        const Footprint footprint_;
        const void *const order_;
        uint32_t before_ = 0;
        Writing *next_ = nullptr;  // of those that write just now
    };

    struct Entry {
        struct Use {
            const Storage *storage = nullptr;
            Footprint footprint{};
            std::atomic<uint32_t> version{0};
        };
        Use uses[2];
        const void *order = nullptr;
        const char *former_writer = nullptr, *own_writer = nullptr;  // of the result
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
