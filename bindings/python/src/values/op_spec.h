// op_spec.h: an op as `invoke` needs it: argument types as numbers, names as interned strings.
#pragma once

#include "bindings/python/src/values/arg_types.inc"
#include "bindings/python/src/values/invoke.h"

#include "yoke/runtime.h"

namespace yoke_python {

enum class ArgKind : uint8_t {
#define YOKE_PY_ENUMERATOR(enumerator, number) enumerator,
    YOKE_PY_FOR_EACH_ARG_KIND(YOKE_PY_ENUMERATOR)
#undef YOKE_PY_ENUMERATOR
};

constexpr int kMaxOpArgs = 16;
constexpr int kMaxOpLists = 4;  // arguments that are lists

struct ArgSpec {
    PyObject *name;  // interned
    const char *text;
    ArgKind kind;
    bool none;      // accepts None
    bool required;  // has no default
};

// Other name of an argument that a call of the op has had: the next call compares pointers alone.
struct SeenName {
    PyObject *name;  // interned
    int place;
    bool is_flag;
};
constexpr int kMaxSeenNames = 16;

struct OpSpec {
    int32_t id;
    int arg_count;
    int places;        // how many of them may stand by place
    int result_count;  // -1 for a list
    int mut_arg;       // the argument that is returned, or -1
    int spread;        // list of ints that may be spread, or -1
    const char *name;
    const char *doc;    // begins with the signature as Python writes it
    bool creates;       // creates its result: takes requires_grad, and may be large
    bool takes_pair;    // two tensors are a whole call
    bool takes_scalar;  // the second of a pair may be a number, or the first
    bool takes_one;     // a single tensor is a whole call
    bool method;        // the first argument is a tensor
    bool gives_places;  // where and nonzero, which also give a tuple of indices
    bool gives_pair;    // values and their indices: a named tuple
    int gathers;        // list of tensors that may stand one by one, as einsum's; -1: none
    int low;  // argument with the default 0 if its neighbour is missing, as randint's; -1: none
    bool may_give_one;  // a list of a single result is given as the tensor alone
    ArgSpec args[kMaxOpArgs];
    int seen_count;
    SeenName seen[kMaxSeenNames];
};

extern OpSpec op_specs[kOpCount];

// Returns the signature for an error, "sum(x, axis=None, keepdim=False, dtype=None)": a new reference, or null.
PyObject *signature_of(const OpSpec &spec);

}  // namespace yoke_python
