/* forms.h: further forms of calls (core/ops/forms.def): other arguments, and mostly another op. */
#ifndef YOKE_LUA_VALUES_FORMS_H
#define YOKE_LUA_VALUES_FORMS_H

#include "bindings/lua/src/values/op_call.h"

enum { kMaxFormArgs = 4, kMaxFormWords = 4 };

typedef enum FormWhen { kAlone, kGiven, kUnset, kTensorGiven, kListGiven } FormWhen;

typedef struct Form {
    const char *call;
    FormWhen when;
    const char *argument; /* decides */
    int place;            /* of this argument in the call; -1: it has a name alone */
    const char *op, *signature;
    int places, arg_count;
    struct {
        const char *name;
        int at;
    } args[kMaxFormArgs];
} Form;

extern const Form yl_forms[];
extern const int yl_form_total;

/* Returns the form that the call on the stack has, or the op itself. In a form, replaces numbers in the place of
 * tensors by tensors without axes. */
OpBinding *yl_form_of(lua_State *L, OpBinding *op);

/* Writes the names of arguments that select a form to `words`, and returns their number. */
int yl_form_words(const OpBinding *op, const char **words);

/* Returns whether argument `i` may be left out. */
static inline int yl_has_default(const OpBinding *op, int i)
{
    const int at = op->at[i];
    return at >= op->op->arg_count || op->op->args[at].has_default ||
           (op->is_form && yl_arg_types[op->types[i]].takes_nil);
}

#endif /* YOKE_LUA_VALUES_FORMS_H */
