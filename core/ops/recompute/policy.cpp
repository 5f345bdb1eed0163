#include "core/ops/recompute/policy.h"

#include "core/base/config.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <bitset>

namespace yoke {

namespace {

class Full final : public Policy {
public:
    bool holds(const LoggedCall &) const noexcept override { return false; }
};

class Matmul final : public Policy {
public:
    bool holds(const LoggedCall &call) const noexcept override
    {
        return call.launch().op >= 0 && kOps[call.launch().op].cost == Cost::kGemm;
    }
};

class OpList final : public Policy {
public:
    explicit OpList(const std::bitset<YOKE_OP_COUNT> &ops) : ops_(ops) {}
    bool holds(const LoggedCall &call) const noexcept override
    {
        return ops_[static_cast<size_t>(&call.named - kOps)];
    }

private:
    const std::bitset<YOKE_OP_COUNT> ops_;
};

}  // namespace

Ref<Policy> Policy::full()
{
    return Ref<Policy>::adopt(new Full);
}

Ref<Policy> Policy::matmul()
{
    return Ref<Policy>::adopt(new Matmul);
}

Ref<Policy> Policy::ops(std::span<const std::string_view> names, const char *call)
{
    std::bitset<YOKE_OP_COUNT> chosen;
    for (const std::string_view wanted : names) {
        bool found = false;
        for (size_t i = 0; i < YOKE_OP_COUNT; ++i) {
            // Parts of an op have the op's name: _linear is linear.
            const bool is_it = wanted == public_name(kOps[i]);
            if (is_it) chosen.set(i);
            found |= is_it && kOps[i].name[0] != '_';
        }
        if (found) continue;
        std::vector<const char *> known;
        for (const OpDef &op : kOps)
            if (op.name[0] != '_') known.push_back(op.name);
        const char *nearest = nearest_word(wanted, known);
        fail(YOKE_E_VALUE, "%s: argument 'policy' names '%.*s', which is not an op; %s", call,
             static_cast<int>(wanted.size()), wanted.data(),
             nearest ? format("did you mean '%s'?", nearest).c_str() : "docs/ops.md lists all ops");
    }
    return Ref<Policy>::adopt(new OpList(chosen));
}

CallResults results_of(const LoggedCall &call)
{
    CallResults results;
    for (int i = call.launch().operand_count; i-- > 0;) {
        const Source &source = call.sources()[static_cast<size_t>(i)];
        if (!source.value.present() || source.value->maker != call.position) continue;
        const yoke_operand &o = call.launch().operands[i];
        results.shape = {o.shape, static_cast<size_t>(o.ndim)};
        results.dtype = o.dtype;
        results.bytes += source.value->bytes;
    }
    return results;
}

}  // namespace yoke
