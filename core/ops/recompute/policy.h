// policy.h: whose results a checkpoint scope holds in memory, so that backward need not make them again.
#pragma once

#include "core/base/refcount.h"
#include "core/ops/recompute/logged_call.h"

#include <span>
#include <string_view>
#include <vector>

namespace yoke {

class Policy : public RefCounted {
public:
    // Whether the results of a call are held, as far as something needs them.
    virtual bool holds(const LoggedCall &call) const noexcept = 0;
    // Also those of its results that follow from others of it by a cheap op.
    virtual bool holds_all() const noexcept { return false; }
    virtual bool is_asked() const noexcept { return false; }
    // If so, as the scope closes, of each call that something needs and whose results it holds: what becomes of them.
    // May raise: then they go.
    enum class Fate { kGo, kStay, kOffload };  // in memory; in that of the host
    virtual Fate fate(const LoggedCall &) { return Fate::kStay; }

    static Ref<Policy> full();  // nobody's
    static Ref<Policy>
    matmul();  // those of matrix products, convolutions, attention: ops of cost gemm
    // Of the ops so named, as docs/ops.md spells them. Raises VALUE for one that is not, with the nearest.
    static Ref<Policy> ops(std::span<const std::string_view> names, const char *call);
};

// What a call makes: shape and dtype of its first result, the bytes of all.
struct CallResults {
    IntList shape;
    yoke_dtype dtype = YOKE_NONE;
    uint64_t bytes = 0;
};
CallResults results_of(const LoggedCall &call);

}  // namespace yoke
