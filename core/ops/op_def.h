// op_def.h: what the op table knows of an op. core/ops/table.cpp, generated from ops.def, holds one OpDef a line.
#pragma once

#include "core/backend/ops.inc"
#include "core/base/refcount.h"
#include "yoke/types.h"

#include <vector>

namespace yoke {

class Plan;      // core/ops/plan.h
class Backward;  // core/ops/op_node.h
using Tensor = Ref<yoke_tensor>;

enum class ArgType : uint8_t {
    kTensor,
    kOptionalTensor,
    kOperand,  // a tensor or a script scalar
    kMut,      // a tensor that is written
    kTensors,
    kMuts,
    kInt,
    kOptionalInt,
    kInts,
    kOptionalInts,
    kFloat,
    kBool,
    kDtype,
    kScalar,
    kOptionalScalar,
    kString,
    kDevice,
};

inline bool is_tensor_type(ArgType type)
{
    return type <= ArgType::kMuts;
}
inline bool is_list_type(ArgType type)
{
    return type == ArgType::kTensors || type == ArgType::kMuts;
}
inline bool is_written(ArgType type)
{
    return type == ArgType::kMut || type == ArgType::kMuts;
}

// What an argument is to the core beyond its type, as its line says.
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
    yoke_arg default_value;
};

constexpr int kMaxArgs = 12;
constexpr int kMaxResults = 3;

struct OpDef {
    const char *name;
    const char *signature;  // its line up to the results
    const char *doc;
    const char *family;
    const ArgSpec *args;
    int arg_count;
    ResultKind results[kMaxResults];
    int result_count;    // all, with the saved ones
    int returned_count;  // what the caller gets; -1 is a list, of composed ops alone
    int mut_result;      // the index of the `mut` argument that is returned itself, or -1
    int in_place_of;     // the op whose result is written into the `mut` argument, or -1
    uint32_t saves
        [kMaxArgs];  // what is kept if argument k wants a gradient: bit i is argument i, bit 16 + i is result i
    AutocastClass autocast;
    Cost cost;
    void (*infer)(yoke_arg *args, Plan &plan);
    void (*vjp)(yoke_arg *args, Backward &backward);
    Tensor (*compose)(yoke_arg *args);
    std::vector<Tensor> (*compose_list)(yoke_arg *args);
    int64_t (*count_list)(yoke_arg *args);  // how many compose_list would give, or its error
};

extern const OpDef kOps[YOKE_OP_COUNT];

// For messages: an internal op goes by the name of what it is the inside of, and nobody calls it with an underscore.
inline const char *public_name(const OpDef &op)
{
    return op.name + (op.name[0] == '_');
}

}  // namespace yoke
