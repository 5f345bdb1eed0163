/* arg_type.h: argument types of the op table for scripts. */
#ifndef YOKE_LUA_VALUES_ARG_TYPE_H
#define YOKE_LUA_VALUES_ARG_TYPE_H

#include "bindings/lua/src/values/arg_types.inc"

typedef enum ArgType {
#define YL_ENUMERATOR(enumerator, ...) enumerator,
    YL_FOR_EACH_ARG_TYPE(YL_ENUMERATOR)
#undef YL_ENUMERATOR
        kArgTypeCount
} ArgType;

typedef struct ArgTypeInfo {
    const char *name; /* spelling of the op table */
    int takes_tensor;
    int takes_nil; /* without a default too */
    int takes_number;
    const char *wanted; /* wanted value in errors */
} ArgTypeInfo;

extern const ArgTypeInfo yl_arg_types[kArgTypeCount];

/* Returns the type spelled `text` in the op table; kArgTypeCount for a type unknown to this binding. */
ArgType yl_arg_type(const char *text);

#endif /* YOKE_LUA_VALUES_ARG_TYPE_H */
