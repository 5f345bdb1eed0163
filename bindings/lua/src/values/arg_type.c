#include "bindings/lua/src/values/arg_type.h"

#include <string.h>

const ArgTypeInfo yl_arg_types[kArgTypeCount] = {
#define YL_INFO(enumerator, name, convert, takes_tensor, takes_nil, takes_number, wanted) \
    {name, takes_tensor, takes_nil, takes_number, wanted},
    YL_FOR_EACH_ARG_TYPE(YL_INFO)
#undef YL_INFO
};

ArgType yl_arg_type(const char *text)
{
#define YL_WRITTEN(name, enumerator) \
    if (!strcmp(text, name)) return enumerator;
    YL_FOR_EACH_WRITTEN_TYPE(YL_WRITTEN)
#undef YL_WRITTEN
    int type = 0;
    while (type < kArgTypeCount && strcmp(text, yl_arg_types[type].name)) ++type;
    return (ArgType)type;
}
