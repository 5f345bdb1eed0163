// policy.h: the calls whose results a checkpoint scope holds in memory, so that backward need not recompute them.
#pragma once

#include "core/base/refcount.h"
#include "core/ops/recompute/logged_call.h"

#include <span>
#include <string_view>
#include <vector>

namespace yoke {

class Policy : public RefCounted {
public:
    // Returns whether the results of a call are held, as far as needed.
    virtual bool holds(const LoggedCall &call) const noexcept = 0;
    // Returns whether results that follow from other results by a cheap op are held too.
    virtual bool holds_all() const noexcept { return false; }
    virtual bool is_asked() const noexcept { return false; }
    // If is_asked(), the closing scope asks for the fate of each held and needed call's results. If fate() raises,
    // the results go.
    enum class Fate { kGo, kStay, kOffload };  // in memory; in host memory
    virtual Fate fate(const LoggedCall &) { return Fate::kStay; }

    static Ref<Policy> full();    // holds no results
    static Ref<Policy> matmul();  // matrix products, convolutions, attention: ops of cost gemm
    // Returns a policy that holds results of the ops in `names`, as spelt in docs/ops.md. Raises VALUE for an unknown
    // name, with the nearest name.
    static Ref<Policy> ops(std::span<const std::string_view> names, const char *call);
};

// Results of a call: shape and dtype of the first result, the bytes of all.
struct CallResults {
    IntList shape;
    yoke_dtype dtype = YOKE_NONE;
    uint64_t bytes = 0;
};
CallResults results_of(const LoggedCall &call);

}  // namespace yoke
