// The module's table, as built from another op table.
#define yoke_backend_get_v1 yoke_true_table
#include "kernels/cuda/host/module.cpp"
#undef yoke_backend_get_v1

extern "C" __attribute__((visibility("default"))) yoke_status yoke_backend_get_v1(
    const yoke_host *host, const yoke_backend **out)
{
    static yoke_backend other;
    const yoke_status status = yoke_true_table(host, out);
    other = **out;
    other.op_table_hash = 0x0123456789abcdefull;
    *out = &other;
    return status;
}
