// cast_cache.h: the casts of weights of an outermost region of autocast (core/ops/autocast.h).
//
// On a device other than the host, the first use of a weight also casts the weights that the thread's last region has
// cast beside this weight, in one launch. Such a cast is recorded when its weight is used, as any cast; only then the
// tape knows it. Weights that another stream or a collective wrote last are left out: the thread's stream may wait for
// these writes only before it uses the weight.
#pragma once

#include "core/base/fork.h"
#include "core/base/refcount.h"
#include "core/ops/cast_memory.h"
#include "core/tensor/tensor.h"

#include <unordered_map>
#include <vector>

namespace yoke {

class Scope;

// Regions of several threads may share a cache. Removed casts are released outside the cache's lock.
class CastCache final : public RefCounted {
public:
    // Returns the cast of a weight (is_weight).
    Tensor find_or_cast(const yoke_tensor &x, yoke_dtype dtype);
    // Releases the casts of an ended capture, by the number of its graph.
    void forget_captured(uint64_t graph) noexcept;

private:
    struct Entry {
        Tensor weight;  // held, so that no other tensor gets the address; of a cast ahead, an alias
        Ref<Storage> storage;  // the weight's storage at the cast; a weight may move
        Tensor cast;
        uint32_t version = 0;
        uint64_t leaf = 0;
        bool is_ahead = false;         // no op has used the cast yet, and no node has made it
        const void *stream = nullptr;  // that makes the cast
    };
    using Entries = std::unordered_map<const yoke_tensor *, Entry>;
    struct Casts {
        Entries entries = {};
        bool tried_ahead = false;
        std::vector<PastWeight> used() const;
    };
    struct Found {
        Tensor cast;
        bool is_ahead = false;
    };

    ~CastCache() override;
    Found find(const yoke_tensor &x, yoke_dtype dtype, uint32_t version);
    void keep(const yoke_tensor &x, const Tensor &cast, uint32_t version);
    static Entries cast_together(const std::vector<PastWeight> &weights, Device &device,
                                 yoke_dtype dtype);
    bool cast_ahead(const yoke_tensor &x, yoke_dtype dtype);
    static void remember(const Casts &some, const Casts &more) noexcept;
    Casts &casts(Casts &gone);

    Mutex mutex_{LockRank::kOther};
    Casts eager_, captured_;
    uint64_t capture_ = 0;  // number of the graph whose capture made the casts in captured_
};

}  // namespace yoke
