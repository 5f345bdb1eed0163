#include "core/ops/launch_copy.h"
#include "core/base/pool.h"

#include <algorithm>
#include <cstring>

namespace yoke {

namespace {

// Places of the parts of a copy.
struct Layout {
    size_t operands, params, numbers, strings, bytes;

    explicit Layout(const yoke_launch &from)
    {
        size_t number_count = 0, string_bytes = 0;
        for (int i = 0; i < from.operand_count; ++i)
            number_count += 2 * static_cast<size_t>(from.operands[i].ndim);
        for (int i = 0; i < from.param_count; ++i) {
            const yoke_arg &p = from.params[i];
            if (p.kind == YOKE_ARG_INTS) number_count += static_cast<size_t>(p.count);
            if (p.kind == YOKE_ARG_STRING) string_bytes += strlen(p.v.string) + 1;
        }
        operands = pool_aligned(sizeof(yoke_launch));
        params =
            operands + pool_aligned(sizeof(yoke_operand) * static_cast<size_t>(from.operand_count));
        numbers = params + pool_aligned(sizeof(yoke_arg) * static_cast<size_t>(from.param_count));
        strings = numbers + sizeof(int64_t) * number_count;
        bytes = pool_aligned(strings + string_bytes);
    }
};

// Copies a list to `place`, moves `place` behind the copy, and returns the copy.
const int64_t *keep(int64_t *&place, const int64_t *list, int64_t count)
{
    int64_t *first = place;
    for (int64_t i = 0; i < count; ++i) *place++ = list[i];
    return first;
}

}  // namespace

size_t launch_copy_bytes(const yoke_launch &from) noexcept
{
    return Layout(from).bytes;
}

yoke_launch *copy_launch(const yoke_launch &from, void *block) noexcept
{
    const Layout layout(from);
    char *base = static_cast<char *>(block);
    auto *launch = reinterpret_cast<yoke_launch *>(base);
    auto *operands = reinterpret_cast<yoke_operand *>(base + layout.operands);
    auto *params = reinterpret_cast<yoke_arg *>(base + layout.params);
    auto *numbers = reinterpret_cast<int64_t *>(base + layout.numbers);
    char *text = base + layout.strings;
    *launch = from;
    launch->operands = operands;
    launch->params = params;
    for (int i = 0; i < from.operand_count; ++i) {
        yoke_operand &o = operands[i] = from.operands[i];
        if (o.flags & YOKE_OPERAND_SCALAR) o.data = &o.immediate;
        if (o.data == &from.operands[i]) o.data = &o;
        o.shape = keep(numbers, o.shape, o.ndim);
        o.strides = keep(numbers, o.strides, o.ndim);
    }
    for (int i = 0; i < from.param_count; ++i) {
        yoke_arg &p = params[i] = from.params[i];
        if (p.kind == YOKE_ARG_INTS) p.v.ints = keep(numbers, p.v.ints, p.count);
        if (p.kind != YOKE_ARG_STRING) continue;
        const size_t bytes = strlen(p.v.string) + 1;
        p.v.string = static_cast<const char *>(memcpy(text, p.v.string, bytes));
        text += bytes;
    }
    return launch;
}

int offset_param(const OpDef &op) noexcept
{
    int param = 0;
    for (int i = 0; i < op.arg_count; ++i) {
        if (is_tensor_type(op.args[i].type)) continue;
        if (op.args[i].role == ArgRole::kRandomOffset) return param;
        ++param;
    }
    return -1;
}

}  // namespace yoke
