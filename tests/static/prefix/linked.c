/* Program of a stranger, built against an install prefix: an op through a linked libyoke. */
#include <stdio.h>
#include <yoke/yoke.h>

static int fail(const char *call)
{
    fprintf(stderr, "%s: %s\n", call, yoke_last_error()->message);
    return 1;
}

int main(void)
{
    const float data[3] = {-1.0f, 0.0f, 2.5f};
    const int64_t shape[1] = {3};
    float result[3] = {0.0f, 0.0f, 0.0f};
    yoke_device *cpu = NULL;
    yoke_tensor *x = NULL;
    yoke_tensor *y = NULL;
    if (yoke_device_open("cpu", &cpu)) return fail("yoke_device_open");
    if (yoke_tensor_from_data(data, sizeof data, shape, 1, YOKE_F32, cpu, &x))
        return fail("yoke_tensor_from_data");
    if (yoke_relu(x, &y)) return fail("yoke_relu");
    if (yoke_tensor_copy_to_host(y, result, sizeof result)) return fail("yoke_tensor_copy_to_host");
    yoke_tensor_release(x);
    yoke_tensor_release(y);
    yoke_device_release(cpu);
    printf("%g %g %g\n", (double)result[0], (double)result[1], (double)result[2]);
    return 0;
}
