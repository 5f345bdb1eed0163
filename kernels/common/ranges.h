// ranges.h: disjoint ranges of addresses or numbers, found in logarithmic time by any address inside. No function
// raises: if an insertion finds no host memory, it returns false.
#pragma once

#include <search.h>

#include <cstdint>

namespace yoke::kernels {

struct Range {
    uintptr_t begin;
    uint64_t bytes;
    void *owner;  // object of the range
};

// A set of ranges that belong to the caller. The tree is the C library's, tsearch(3).
class Ranges {
public:
    // Returns a range that overlaps [begin, begin + bytes), or null.
    const Range *find(uintptr_t begin, uint64_t bytes) const
    {
        const Range wanted{begin, bytes, nullptr};
        void *const found = tfind(&wanted, &root_, compare);
        return found ? *static_cast<const Range **>(found) : nullptr;
    }
    // Adds a range. The range must not overlap another range. Returns false if there is no host memory.
    bool insert(const Range *range) { return tsearch(range, &root_, compare) != nullptr; }
    void erase(const Range *range) { tdelete(range, &root_, compare); }
    // Calls f(range) for each range, in the order of addresses.
    template <class F>
    void each(const F &f) const
    {
        const auto visit = [](const void *node, VISIT when, void *function) {
            if (when == postorder || when == leaf)
                (*static_cast<const F *>(function))(**static_cast<const Range *const *>(node));
        };
        twalk_r(root_, visit, const_cast<F *>(&f));
    }

private:
    // Compares two ranges. Ranges that overlap count as equal.
    static int compare(const void *a, const void *b)
    {
        const Range &left = *static_cast<const Range *>(a), &right = *static_cast<const Range *>(b);
        if (left.begin + left.bytes <= right.begin) return -1;
        return right.begin + right.bytes <= left.begin ? 1 : 0;
    }

    void *root_ = nullptr;
};

}  // namespace yoke::kernels
