/* Uses the added dtypes from C: names, sizes, made from memory, cast, moved, printed, read. */
#include "yoke/yoke.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                           \
    do {                                                            \
        if (!(condition)) {                                         \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            exit(1);                                                \
        }                                                           \
    } while (0)

static void check(yoke_status status)
{
    if (status) {
        fprintf(stderr, "%s\n", yoke_last_error()->message);
        exit(1);
    }
}

/* Makes a tensor of `count` elements on the device, and reads it as f64. */
static void expect(yoke_device *device, yoke_dtype dtype, const void *data, int64_t count,
                   const double *wanted)
{
    yoke_tensor *x = NULL, *wide = NULL;
    double got[8];
    check(
        yoke_tensor_from_data(data, count * yoke_dtype_size(dtype), &count, 1, dtype, device, &x));
    EXPECT(yoke_tensor_dtype(x) == dtype);
    check(yoke_cast(x, YOKE_F64, &wide));
    check(yoke_tensor_copy_to_host(wide, got, count * 8));
    for (int64_t i = 0; i < count; i++) EXPECT(got[i] == wanted[i]);
    yoke_tensor_release(wide);
    yoke_tensor_release(x);
}

/* int16 goes to a file and back; float8_e3m4, for which the format has no name, is refused. */
static void save_and_load(yoke_device *device)
{
    const int16_t numbers[2] = {300, -32768};
    const int64_t shape[1] = {2};
    const char *folder = getenv("TMPDIR");
    char path[1000];
    int16_t got[2];
    yoke_state *state = NULL, *back = NULL;
    yoke_tensor *x = NULL, *y = NULL;
    snprintf(path, sizeof path, "%s/add_dtype_%p", folder ? folder : "/tmp", (void *)&state);
    check(yoke_tensor_from_data(numbers, sizeof numbers, shape, 1, YOKE_I16, device, &x));
    check(yoke_state_create(&state));
    check(yoke_state_set_tensor(state, "list/x", x));
    check(yoke_save(path, state, NULL, NULL));
    check(yoke_load(path, NULL, &back));
    check(yoke_state_get_tensor(back, "list/x", &y));
    EXPECT(yoke_tensor_dtype(y) == YOKE_I16);
    check(yoke_tensor_copy_to_host(y, got, sizeof got));
    EXPECT(memcmp(got, numbers, sizeof got) == 0);
    yoke_tensor_release(y);
    check(yoke_cast(x, YOKE_F8_E3M4, &y));
    check(yoke_state_set_tensor(state, "y", y));
    EXPECT(yoke_save(path, state, NULL, NULL) == YOKE_E_TYPE &&
           strstr(yoke_last_error()->message, "'y' is float8_e3m4"));
    remove(path);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
    yoke_state_release(back);
    yoke_state_release(state);
}

int main(void)
{
    const uint8_t bits[4] = {0x38, 0xc2, 0x6f, 0x01};
    const double numbers[4] = {1.5, -2.25, 15.5, 0.015625};
    const int16_t integers[3] = {300, -32768, 32767};
    const double same[3] = {300, -32768, 32767};
    yoke_device *device = NULL;
    yoke_dtype found = YOKE_NONE;
    check(yoke_device_open(getenv("YOKE_DEVICE"), &device));
    EXPECT(YOKE_F8_E3M4 == 12 && YOKE_I16 == 13 && YOKE_DTYPE_COUNT == 14);
    EXPECT(strcmp(yoke_dtype_name(YOKE_F8_E3M4), "float8_e3m4") == 0 &&
           yoke_dtype_size(YOKE_F8_E3M4) == 1);
    check(yoke_dtype_from_name("i16", &found));
    EXPECT(found == YOKE_I16 && yoke_dtype_size(YOKE_I16) == 2);
    expect(device, YOKE_F8_E3M4, bits, 4, numbers);
    expect(device, YOKE_I16, integers, 3, same);

    const int64_t shape[1] = {2};
    const float values[2] = {0.1f, -15.8f};
    uint8_t narrow[2];
    double first = 0;
    yoke_tensor *x = NULL, *y = NULL, *sum = NULL;
    check(yoke_tensor_from_data(values, sizeof values, shape, 1, YOKE_F32, device, &x));
    check(yoke_cast(x, YOKE_F8_E3M4, &y));
    check(yoke_tensor_copy_to_host(y, narrow, sizeof narrow));
    EXPECT(narrow[0] == 0x06 && narrow[1] == 0xf0); /* 0.09375, and beyond the range: -infinity */
    EXPECT(yoke_add(y, y, &sum) == YOKE_E_TYPE &&
           strstr(yoke_last_error()->message, "float8_e3m4"));
    yoke_tensor *one = NULL;
    const yoke_scalar fill = {.kind = YOKE_ARG_FLOAT, .v = {.f = 1.5}};
    check(yoke_full(NULL, 0, &fill, YOKE_F8_E3M4, device, &one));
    check(yoke_tensor_item_f64(one, &first));
    EXPECT(first == 1.5);
    yoke_tensor_release(one);
    save_and_load(device);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
    yoke_device_release(device);
    return 0;
}
