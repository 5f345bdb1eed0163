#include "core/tensor/live.h"

#include "core/device/kinds.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace yoke {

namespace {

// Set of addresses in a single table without links. A tensor comes and goes with every op, so a node for each would
// cost an allocation. Empty places are null; a removal moves later entries back.
class AddressSet {
public:
    void insert(const yoke_tensor *tensor)
    {
        if (2 * (count_ + 1) > places_.size()) grow();
        place(tensor);
        ++count_;
    }
    void erase(const yoke_tensor *tensor) noexcept
    {
        if (places_.empty()) return;
        size_t hole = home(tensor);
        while (places_[hole] != tensor) {
            if (!places_[hole]) return;
            hole = next(hole);
        }
        for (size_t at = next(hole); places_[at]; at = next(at)) {
            const size_t wanted = home(places_[at]);
            // The entry may move to the hole unless its home lies between the two.
            if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
            places_[hole] = places_[at];
            hole = at;
        }
        places_[hole] = nullptr;
        --count_;
    }
    bool contains(const yoke_tensor *tensor) const noexcept
    {
        if (places_.empty()) return false;
        size_t at = home(tensor);
        while (places_[at] && places_[at] != tensor) at = next(at);
        return places_[at] != nullptr;
    }
    template <class Visit>
    void each(Visit visit) const
    {
        for (const yoke_tensor *tensor : places_)
            if (tensor) visit(*tensor);
    }

private:
    size_t mask() const { return places_.size() - 1; }
    size_t next(size_t at) const { return (at + 1) & mask(); }
    size_t home(const yoke_tensor *tensor) const
    {
        const uint64_t mixed = reinterpret_cast<uintptr_t>(tensor) * 0x9E3779B97F4A7C15u;
        return static_cast<size_t>(mixed >> 32) & mask();
    }
    void place(const yoke_tensor *tensor)
    {
        size_t at = home(tensor);
        while (places_[at]) at = next(at);
        places_[at] = tensor;
    }
    void grow()
    {
        std::vector<const yoke_tensor *> old(places_.empty() ? 64 : 2 * places_.size());
        old.swap(places_);
        for (const yoke_tensor *tensor : old)
            if (tensor) place(tensor);
    }

    std::vector<const yoke_tensor *> places_;  // a power of two of them, at most half full
    size_t count_ = 0;
};

// Number of parts of the list: threads with different addresses seldom wait for each other.
constexpr size_t kParts = 16;
struct Part {
    Mutex mutex{LockRank::kOther};
    AddressSet tensors;
};
// Parts made while the library is loaded, so that a fork never finds them half made; never destroyed.
Part *const parts = new Part[kParts];

Part &part_of(const yoke_tensor *tensor)
{
    return parts[(reinterpret_cast<uintptr_t>(tensor) >> 12) % kParts];
}

}  // namespace

int64_t detail::live_tensors(Device &device, size_t most, std::vector<std::string> &names)
{
    int64_t count = 0;
    for (size_t i = 0; i < kParts; ++i) {
        const std::lock_guard lock(parts[i].mutex);
        parts[i].tensors.each([&](const yoke_tensor &tensor) {
            if (tensor.device != &device) return;
            if (static_cast<size_t>(count++) < most) names.push_back(describe(tensor));
        });
    }
    return count;
}

bool visit_live(const yoke_tensor *address, const std::function<void(const yoke_tensor &)> &visit)
{
    Part &part = part_of(address);
    const std::lock_guard lock(part.mutex);
    if (!part.tensors.contains(address)) return false;
    visit(*address);
    return true;
}

void detail::note_live(const yoke_tensor *tensor)
{
    Part &part = part_of(tensor);
    const std::lock_guard lock(part.mutex);
    part.tensors.insert(tensor);
}

void detail::forget_live(const yoke_tensor *tensor) noexcept
{
    Part &part = part_of(tensor);
    const std::lock_guard lock(part.mutex);
    part.tensors.erase(tensor);
}

}  // namespace yoke
