/* Autocast from C: regions come into force by a swap, nest, and keep the casts of weights; the tape reports its saved
 * tensors. */
#include "check.h"

static const int64_t square[2] = {2, 2};
static const float ones[4] = {1.0f, 1.0f, 1.0f, 1.0f};

static yoke_dtype dtype_of_product(yoke_tensor *x)
{
    yoke_tensor *product = NULL;
    OK(yoke_matmul(x, x, &product));
    const yoke_dtype dtype = yoke_tensor_dtype(product);
    yoke_tensor_release(product);
    return dtype;
}

static void a_region_is_in_force_between_two_swaps(void)
{
    yoke_tensor *x = floats(ones, square, 2);
    yoke_autocast *region = NULL;
    OK(yoke_autocast_create(1, YOKE_F16, 1, &region));
    CHECK(dtype_of_product(x) == YOKE_F32);
    CHECK(yoke_autocast_swap(region) == NULL);
    CHECK(yoke_is_autocast_enabled() == 1);
    CHECK(dtype_of_product(x) == YOKE_F16);
    CHECK(yoke_autocast_dtype(NULL) == YOKE_F16);
    CHECK(yoke_autocast_swap(NULL) == region);
    CHECK(yoke_is_autocast_enabled() == 0);
    CHECK(dtype_of_product(x) == YOKE_F32);
    yoke_autocast_release(region);
    yoke_autocast_release(NULL);
    yoke_tensor_release(x);
}

static void regions_nest_and_may_be_released_in_any_order(void)
{
    yoke_tensor *x = floats(ones, square, 2);
    yoke_autocast *outer = NULL, *off = NULL;
    OK(yoke_autocast_create(1, YOKE_NONE, 1, &outer));
    yoke_autocast *before = yoke_autocast_swap(outer);
    OK(yoke_autocast_create(0, YOKE_NONE, 1, &off));
    CHECK(dtype_of_product(x) == YOKE_BF16);
    CHECK(yoke_autocast_swap(off) == outer);
    CHECK(dtype_of_product(x) == YOKE_F32);
    CHECK(yoke_autocast_swap(before) == off);
    yoke_autocast_release(outer);
    yoke_autocast_release(off);
    yoke_tensor_release(x);
}

static void kept_casts_leave_with_the_last_region(void)
{
    yoke_tensor *weight = floats(ones, square, 2);
    OK(yoke_tensor_set_requires_grad(weight, 1));
    const int64_t live = yoke_live_tensor_count();
    yoke_autocast *region = NULL;
    OK(yoke_autocast_create(1, YOKE_BF16, 1, &region));
    yoke_autocast_swap(region);
    CHECK(dtype_of_product(weight) == YOKE_BF16);
    CHECK(yoke_live_tensor_count() > live);
    yoke_autocast_swap(NULL);
    yoke_autocast_release(region);
    CHECK(yoke_live_tensor_count() == live);
    yoke_tensor_release(weight);
}

static double total_of_product(yoke_tensor *x, yoke_tensor *weight)
{
    yoke_tensor *product = NULL, *total = NULL;
    double value = 0;
    OK(yoke_matmul(x, weight, &product));
    OK(yoke_sum(product, NULL, 0, 0, YOKE_NONE, &total));
    OK(yoke_tensor_item_f64(total, &value));
    yoke_tensor_release(total);
    yoke_tensor_release(product);
    return value;
}

static void bytes_of_the_host_make_a_kept_cast_stale(void)
{
    static const float threes[4] = {3.0f, 3.0f, 3.0f, 3.0f};
    yoke_tensor *x = floats(ones, square, 2), *weight = floats(ones, square, 2);
    OK(yoke_tensor_set_requires_grad(weight, 1));
    yoke_autocast *region = NULL;
    OK(yoke_autocast_create(1, YOKE_BF16, 1, &region));
    yoke_autocast_swap(region);
    CHECK(total_of_product(x, weight) == 8);
    const int32_t records = yoke_set_grad_enabled(0);
    OK(yoke_tensor_copy_from_host(weight, threes, sizeof threes));
    yoke_set_grad_enabled(records);
    CHECK(total_of_product(x, weight) == 24);
    yoke_autocast_swap(NULL);
    yoke_autocast_release(region);
    yoke_tensor_release(weight);
    yoke_tensor_release(x);
}

static void a_dtype_that_is_no_half_is_refused(void)
{
    yoke_autocast *region = (yoke_autocast *)&ones;
    FAILS(yoke_autocast_create(1, YOKE_F64, 1, &region), YOKE_E_VALUE, "float64");
    CHECK(region == NULL);
    FAILS(yoke_autocast_create(1, 99, 1, &region), YOKE_E_VALUE, "99");
    FAILS(yoke_autocast_create(1, YOKE_F16, 1, NULL), YOKE_E_VALUE, "'out'");
}

static void what_the_tape_saves_is_told(void)
{
    yoke_tensor *x = floats(ones, square, 2), *y = NULL;
    yoke_saved saved = {sizeof saved, 0, NULL, NULL, NULL, 0, 0, 0};
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_exp(x, &y));
    CHECK(yoke_tensor_saved_count(y) == 1);
    OK(yoke_tensor_saved(y, 0, &saved));
    CHECK(!strcmp(saved.op, "exp") && !strcmp(saved.argument, "out"));
    CHECK(saved.dtype == YOKE_F32 && saved.ndim == 2 && saved.shape[1] == 2 && saved.nbytes == 16);
    FAILS(yoke_tensor_saved(y, 1, &saved), YOKE_E_INDEX, "keeps 1");
    FAILS(yoke_tensor_saved(y, -1, &saved), YOKE_E_INDEX, "-1");
    saved.struct_size = 0;
    FAILS(yoke_tensor_saved(y, 0, &saved), YOKE_E_VALUE, "struct_size");
    CHECK(yoke_tensor_saved_count(x) == 0);
    CHECK(yoke_tensor_saved_count(NULL) == -1);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

int main(void)
{
    RUN(a_region_is_in_force_between_two_swaps);
    RUN(regions_nest_and_may_be_released_in_any_order);
    RUN(kept_casts_leave_with_the_last_region);
    RUN(bytes_of_the_host_make_a_kept_cast_stale);
    RUN(a_dtype_that_is_no_half_is_refused);
    RUN(what_the_tape_saves_is_told);
    return report();
}
