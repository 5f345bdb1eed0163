// op_def.h: the op table's facts about an op. core/ops/table.cpp, generated from ops.def, holds an OpDef for each
// line.
#pragma once

#include "core/backend/ops.inc"
#include "core/base/refcount.h"
#include "core/ops/arg_types.inc"
#include "core/ops/args.h"
#include "yoke/types.h"

#include <vector>

namespace yoke {

class Plan;      // core/ops/plan.h
class Backward;  // core/ops/op_node.h
using Tensor = Ref<yoke_tensor>;

enum class ArgType : uint8_t {
#define YOKE_ARG_TYPE(enumerator, ...) enumerator,
    YOKE_FOR_EACH_ARG_TYPE(YOKE_ARG_TYPE)
#undef YOKE_ARG_TYPE
};

struct ArgTypeInfo {
    const char *name;    // as ops.def spells it
    uint32_t kinds;      // bit k: a yoke_arg of kind k holds a value of it
    bool written;        // the argument's memory is written
    const char *wanted;  // in an error: "it takes ..."
};

// In the order of ArgType.
inline constexpr ArgTypeInfo kArgTypes[] = {
#define YOKE_ARG_TYPE(enumerator, ...) {__VA_ARGS__},
    YOKE_FOR_EACH_ARG_TYPE(YOKE_ARG_TYPE)
#undef YOKE_ARG_TYPE
};

inline const ArgTypeInfo &info_of(ArgType type)
{
    return kArgTypes[static_cast<size_t>(type)];
}

// Returns the set of types for which the condition holds: bit k is type k. Every call asks, so the set is a constant.
template <class Condition>
consteval uint32_t types_that(Condition condition)
{
    uint32_t types = 0, bit = 1;
    for (const ArgTypeInfo &type : kArgTypes) {
        if (condition(type)) types |= bit;
        bit <<= 1;
    }
    return types;
}
constexpr bool is_in(uint32_t types, ArgType type)
{
    return types >> static_cast<int>(type) & 1;
}

// Returns whether the type is a single tensor, possibly absent or replaced by a number.
inline bool is_single_tensor_type(ArgType type)
{
    return is_in(types_that([](auto &t) { return t.kinds >> YOKE_ARG_TENSOR & 1; }), type);
}
inline bool is_list_type(ArgType type)
{
    return is_in(types_that([](auto &t) { return t.kinds >> YOKE_ARG_TENSORS & 1; }), type);
}
inline bool is_tensor_type(ArgType type)
{
    constexpr uint32_t kinds = 1u << YOKE_ARG_TENSOR | 1u << YOKE_ARG_TENSORS;
    return is_in(types_that([](auto &t) { return t.kinds & kinds; }), type);
}
inline bool is_written(ArgType type)
{
    return is_in(types_that([](auto &t) { return t.written; }), type);
}

// Role of an argument for the core, beyond its type, from the op's line.
enum class ArgRole : uint8_t {
    kNone,
    kIndex,         // names places in another tensor: such an op does not go element by element
    kRandomOffset,  // where in the thread's random numbers the op draws; a replay of a graph moves it on
};

enum class ResultKind : uint8_t {
    kTensor,  // differentiable
    kPlain,   // not differentiable
    kSaved,   // kept for the vjp, not returned
};

enum class AutocastClass : uint8_t { kLow, kF32, kF32UnlessDtype, kPromote, kError, kNone };
enum class Cost : uint8_t { kBytes, kGemm, kView, kComposed, kInplace };

struct ArgSpec {
    const char *name;
    ArgType type;
    ArgRole role;
    bool has_default;
    bool by_name;  // scripts pass the argument only by name
    yoke_arg default_value;
};

constexpr int kMaxArgs = 12;
constexpr int kMaxResults = 4;

struct OpDef {
    const char *name;
    const char *signature;  // its line up to the results
    const char *doc;
    const char *family;
    const ArgSpec *args;
    int arg_count;
    ResultKind results[kMaxResults];
    int result_count;    // all, with the saved ones
    int returned_count;  // number of values for the caller; -1 is a list, only in composed ops
    int mut_result;      // index of the `mut` argument that is also the result, or -1
    int in_place_of;     // the op whose result is written into the `mut` argument, or -1
    uint32_t saves
        [kMaxArgs];  // tensors kept if argument k wants a gradient: bit i is argument i, bit 16 + i is result i
    AutocastClass autocast;
    Cost cost;
    void (*infer)(yoke_arg *args, Plan &plan);
    void (*vjp)(yoke_arg *args, Backward &backward);
    void (*compose)(yoke_arg *args, Tensor *results);
    std::vector<Tensor> (*compose_list)(yoke_arg *args);
    int64_t (*count_list)(yoke_arg *args);  // how many compose_list would give, or its error
};

extern const OpDef kOps[YOKE_OP_COUNT];

// Returns the name for messages: without the underscore of an internal op, which gives the public op's name.
inline const char *public_name(const OpDef &op)
{
    return op.name + (op.name[0] == '_');
}

}  // namespace yoke
