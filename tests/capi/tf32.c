/* TF32 from C: TF32 is allowed or not for the whole process, and the CPU never rounds to TF32. */
#include "check.h"

static void it_is_not_allowed_until_the_program_says_so(void)
{
    CHECK(yoke_get_allow_tf32() == 0);
    OK(yoke_set_allow_tf32(1));
    CHECK(yoke_get_allow_tf32() == 1);
    OK(yoke_set_allow_tf32(-5));
    CHECK(yoke_get_allow_tf32() == 1);
    OK(yoke_set_allow_tf32(0));
    CHECK(yoke_get_allow_tf32() == 0);
}

static void a_product_on_the_cpu_is_exact_whether_it_is_allowed_or_not(void)
{
    static const int64_t shape[2] = {1, 1};
    static const float fine[1] = {1.0f + 1.0f / 4096}, one[1] = {1.0f};
    for (int32_t allowed = 0; allowed < 2; ++allowed) {
        yoke_tensor *x = floats(fine, shape, 2), *y = floats(one, shape, 2), *product = NULL;
        double got = 0;
        OK(yoke_set_allow_tf32(allowed));
        OK(yoke_matmul(x, y, &product));
        OK(yoke_tensor_item_f64(product, &got));
        CHECK(got == (double)fine[0]);
        yoke_tensor_release(x);
        yoke_tensor_release(y);
        yoke_tensor_release(product);
    }
    OK(yoke_set_allow_tf32(0));
}

int main(void)
{
    RUN(it_is_not_allowed_until_the_program_says_so);
    RUN(a_product_on_the_cpu_is_exact_whether_it_is_allowed_or_not);
    return report();
}
