/* Calls the added op from C, by function, slot and name, and checks the gradient. */
#include "yoke/yoke.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "yoke/api.h"

static void check(yoke_status status)
{
    if (status) {
        fprintf(stderr, "%s\n", yoke_last_error()->message);
        exit(1);
    }
}

static void expect(yoke_tensor *x, const double *wanted, const char *what)
{
    double got[3];
    check(yoke_tensor_copy_to_host(x, got, sizeof got));
    for (int i = 0; i < 3; i++)
        if (fabs(got[i] - wanted[i]) > 1e-12) {
            fprintf(stderr, "%s[%d] is %g, not %g\n", what, i, got[i], wanted[i]);
            exit(1);
        }
}

int main(void)
{
    const double values[3] = {1, -2, 3}, cubes[3] = {1, -8, 27}, slopes[3] = {3, 12, 27};
    const int64_t shape[1] = {3};
    yoke_tensor *x = NULL, *y = NULL, *total = NULL, *grad = NULL;
    yoke_device *device = NULL;
    int32_t op = -1;
    check(yoke_device_open(getenv("YOKE_DEVICE"), &device));
    check(yoke_tensor_from_data(values, sizeof values, shape, 1, YOKE_F64, device, &x));
    check(yoke_tensor_set_requires_grad(x, 1));
    check(yoke_test_cube(x, &y));
    expect(y, cubes, "the value");
    check(yoke_sum(y, NULL, 0, 0, YOKE_NONE, &total));
    check(yoke_backward(total, NULL, 0));
    check(yoke_tensor_grad(x, &grad));
    expect(grad, slopes, "the gradient");

    yoke_tensor *again = NULL, *third = NULL;
    check(yoke_get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR)->test_cube(x, &again));
    expect(again, cubes, "the slot's value");
    check(yoke_op_find("test_cube", &op));
    yoke_arg arg = {YOKE_ARG_TENSOR, 0, {x}};
    check(yoke_op_invoke(op, &arg, 1, &third, 1));
    expect(third, cubes, "the invoked value");

    yoke_tensor *all[] = {x, y, total, grad, again, third};
    for (int i = 0; i < 6; i++) yoke_tensor_release(all[i]);
    yoke_device_release(device);
    return yoke_live_tensor_count() == 0 ? 0 : 1;
}
