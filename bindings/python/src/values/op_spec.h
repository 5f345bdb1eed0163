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
    bool lifts;     // also takes a number, as a tensor without axes
    int at;         // place in the op's own arguments
};

// Other name of an argument that a call of the op has had: the next call compares pointers alone.
struct SeenName {
    PyObject *name;  // interned
    int place;
    bool is_flag;
};
constexpr int kMaxSeenNames = 16;

struct Form;

struct OpSpec {
    int32_t id;
    int arg_count;     // as scripts know them
    int passed;        // as the op knows them
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
    bool gives_truth;   // a bool of Python
    bool gives_pair;    // values and their indices: a named tuple
    int gathers;        // list of tensors that may stand one by one, as einsum's; -1: none
    int low;  // argument with the default 0 if its neighbour is missing, as randint's; -1: none
    bool may_give_one;  // a list of a single result is given as the tensor alone
    int form_count;     // further forms of the call
    Form *forms;
    ArgSpec args[kMaxOpArgs];
    int seen_count;
    SeenName seen[kMaxSeenNames];
};

// When a call has a further form (core/ops/forms.def).
enum class When : uint8_t { kAlone, kGiven, kUnset, kTensor, kList };

// Further form of a call: other arguments, and mostly another op.
struct Form {
    When when;
    PyObject *argument;  // name of the argument that decides; interned
    int place;           // of this argument in the call; -1: it has a name alone
    OpSpec spec;
};

extern OpSpec op_specs[kOpCount];

// Returns the place of the argument that a keyword names, also by another name; -1 for an unknown name.
int place_of_keyword(OpSpec &spec, PyObject *name);

// Returns the signature for an error, "sum(x, axis=None, keepdim=False, dtype=None)": a new reference, or null.
PyObject *signature_of(const OpSpec &spec);

}  // namespace yoke_python
