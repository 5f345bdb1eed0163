/* Autograd and the optimizer from C: values, misuse, and the struct of options in every size. */
#include "check.h"

static const int64_t three[1] = {3};
static const float weights[3] = {1.0f, 2.0f, 3.0f};

static yoke_tensor *leaf(void)
{
    yoke_tensor *x = floats(weights, three, 1);
    OK(yoke_tensor_set_requires_grad(x, 1));
    return x;
}

static yoke_sgd_options options_of(double lr, double momentum)
{
    yoke_sgd_options options = {sizeof(yoke_sgd_options), 0, 0, 0, 0, 0, 0};
    options.lr = lr;
    options.momentum = momentum;
    return options;
}

/* Returns the sum of the squares of x. */
static yoke_tensor *loss_of(yoke_tensor *x)
{
    yoke_tensor *square = NULL, *loss = NULL;
    OK(yoke_mul(x, x, &square));
    OK(yoke_sum(square, NULL, 0, 0, YOKE_NONE, &loss));
    yoke_tensor_release(square);
    return loss;
}

static void gradients_add_up_until_they_are_zeroed(void)
{
    const float once[3] = {2.0f, 4.0f, 6.0f}, twice[3] = {4.0f, 8.0f, 12.0f},
                none[3] = {0.0f, 0.0f, 0.0f};
    yoke_tensor *x = leaf(), *loss = loss_of(x), *grad = NULL;
    OK(yoke_tensor_grad(x, &grad));
    CHECK(grad == NULL);
    OK(yoke_backward(loss, NULL, 1));
    OK(yoke_tensor_grad(x, &grad));
    check_floats(grad, once, 3);
    yoke_tensor_release(grad);
    OK(yoke_backward(loss, NULL, 0));
    OK(yoke_tensor_grad(x, &grad));
    check_floats(grad, twice, 3);
    yoke_tensor_release(grad);
    OK(yoke_tensor_zero_grad(x, 0));
    OK(yoke_tensor_grad(x, &grad));
    check_floats(grad, none, 3);
    yoke_tensor_release(grad);
    OK(yoke_tensor_zero_grad(x, 1));
    OK(yoke_tensor_grad(x, &grad));
    CHECK(grad == NULL);
    FAILS(yoke_backward(loss, NULL, 0), YOKE_E_STATE, "backward");
    yoke_tensor_release(loss);
    yoke_tensor_release(x);
}

static void grad_returns_gradients_and_leaves_the_leaves_alone(void)
{
    const float once[3] = {2.0f, 4.0f, 6.0f};
    yoke_tensor *x = leaf(), *loss = loss_of(x), *grad = NULL, *kept = NULL;
    OK(yoke_grad(&loss, 1, NULL, &x, 1, 0, &grad));
    check_floats(grad, once, 3);
    OK(yoke_tensor_grad(x, &kept));
    CHECK(kept == NULL);
    yoke_tensor_release(grad);
    yoke_tensor_release(loss);
    yoke_tensor_release(x);
}

static void misuse_of_autograd_is_refused(void)
{
    yoke_tensor *x = leaf(), *y = NULL, *plain = floats(weights, three, 1), *cut = NULL;
    yoke_scalar one = {YOKE_ARG_INT, 0, {0}};
    OK(yoke_exp(x, &y));
    FAILS(yoke_backward(y, NULL, 0), YOKE_E_VALUE, "[3]");
    FAILS(yoke_backward(plain, NULL, 0), YOKE_E_STATE, "grad");
    FAILS(yoke_fill_(x, &one), YOKE_E_STATE, "leaf");
    FAILS(yoke_tensor_copy_from_host(x, weights, sizeof weights), YOKE_E_STATE, "leaf");
    FAILS(yoke_tensor_set_requires_grad(y, 0), YOKE_E_STATE, "detach");
    OK(yoke_tensor_detach(y, &cut));
    CHECK(yoke_tensor_requires_grad(y) == 1 && yoke_tensor_requires_grad(cut) == 0);
    CHECK(yoke_tensor_is_leaf(x) == 1 && yoke_tensor_is_leaf(y) == 0 &&
          yoke_tensor_is_leaf(cut) == 1);
    yoke_tensor_release(cut);
    yoke_tensor_release(plain);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

static void the_grad_mode_returns_what_it_was(void)
{
    yoke_tensor *x = leaf(), *y = NULL;
    CHECK(yoke_is_grad_enabled() == 1);
    CHECK(yoke_set_grad_enabled(0) == 1);
    OK(yoke_exp(x, &y));
    CHECK(yoke_tensor_requires_grad(y) == 0);
    CHECK(yoke_set_grad_enabled(1) == 0 && yoke_is_grad_enabled() == 1);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

static void sgd_steps_with_momentum(void)
{
    /* g = 2x; first b = g, then b = g + b / 2; x -= b / 4. */
    const float first[3] = {0.5f, 1.0f, 1.5f}, second[3] = {0.0f, 0.0f, 0.0f};
    yoke_sgd_options options = options_of(0.25, 0.5);
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf(), *state = NULL;
    const float momentum[3] = {2.0f, 4.0f, 6.0f};
    int64_t count = 0;
    int round;
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    for (round = 0; round < 2; ++round) {
        yoke_tensor *loss = loss_of(x);
        OK(yoke_optimizer_zero_grad(sgd, 1));
        OK(yoke_backward(loss, NULL, 0));
        OK(yoke_optimizer_step(sgd));
        check_floats(x, round ? second : first, 3);
        yoke_tensor_release(loss);
    }
    OK(yoke_optimizer_get_state(sgd, 0, 0, "momentum", &state));
    check_floats(state, momentum, 3); /* 2 · 0.5 + 2 / 2, … */
    OK(yoke_optimizer_set_state(sgd, 0, 0, "momentum", state));
    yoke_tensor_release(state);
    CHECK(yoke_optimizer_group_count(sgd) == 1);
    OK(yoke_optimizer_param_count(sgd, 0, &count));
    CHECK(count == 1);
    FAILS(yoke_optimizer_get_state(sgd, 0, 0, "velocity", &state), YOKE_E_VALUE, "velocity");
    FAILS(yoke_optimizer_get_state(sgd, 1, 0, "momentum", &state), YOKE_E_INDEX, "1");
    FAILS(yoke_optimizer_param(sgd, 0, 1, &state), YOKE_E_INDEX, "'index' is 1");
    FAILS(yoke_optimizer_set_state(sgd, 0, 0, "master", x), YOKE_E_VALUE, "parameter 0 of group 0");
    FAILS(yoke_sgd_add_group(sgd, &x, 1, NULL), YOKE_E_VALUE, "parameter");
    yoke_optimizer_release(sgd);
    yoke_tensor_release(x);
}

static void the_learning_rate_may_follow_a_schedule(void)
{
    yoke_sgd_options options = options_of(0.5, 0);
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf();
    double lr = -1;
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    OK(yoke_optimizer_set_lr(sgd, -1, yoke_schedule_linear(0.5, 0.0, 4, 1)));
    OK(yoke_optimizer_get_lr(sgd, 0, &lr));
    CHECK(lr == 0.375);
    CHECK(yoke_schedule_linear(0.5, 0.25, 4, -3) == 0.5 &&
          yoke_schedule_linear(0.5, 0.25, 4, 9) == 0.25);
    FAILS(yoke_optimizer_set_lr(sgd, 0, -1.0), YOKE_E_VALUE, "-1");
    FAILS(yoke_optimizer_get_lr(sgd, 3, &lr), YOKE_E_INDEX, "3");
    yoke_optimizer_release(sgd);
    yoke_tensor_release(x);
}

/* Reads options of any size: a missing part counts as zero, and an unknown tail must be zero. */
static void options_of_every_size_are_read_or_refused(void)
{
    unsigned char bytes[2 * sizeof(yoke_sgd_options)];
    const yoke_sgd_options options = options_of(0.5, 0.25);
    uint32_t size;
    for (size = 0; size <= sizeof bytes; ++size) {
        yoke_optimizer *sgd = NULL;
        yoke_tensor *x = leaf();
        yoke_sgd_options back = {sizeof(yoke_sgd_options), 0, 0, 0, 0, 0, 0};
        memset(bytes, 0xA5, sizeof bytes); /* garbage beyond struct_size is never read */
        memset(bytes, 0, size);
        memcpy(bytes, &options, size < sizeof options ? size : sizeof options);
        memcpy(bytes, &size, sizeof size);
        if (size < sizeof(uint32_t)) {
            FAILS(yoke_sgd_create((const yoke_sgd_options *)(void *)bytes, &sgd), YOKE_E_VALUE,
                  "struct_size");
        } else {
            OK(yoke_sgd_create((const yoke_sgd_options *)(void *)bytes, &sgd));
            OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
            OK(yoke_sgd_get_options(sgd, 0, &back));
            if (size >= 16) CHECK(back.lr == 0.5);
            if (size <= 8) CHECK(back.lr == 0);
            CHECK(size < 24 ? back.momentum != 0.25 : back.momentum == 0.25);
            CHECK(back.struct_size == sizeof(yoke_sgd_options));
        }
        yoke_optimizer_release(sgd);
        sgd = NULL;
        if (size > sizeof(yoke_sgd_options)) {
            bytes[size - 1] = 1;
            FAILS(yoke_sgd_create((const yoke_sgd_options *)(void *)bytes, &sgd),
                  YOKE_E_UNSUPPORTED, "newer");
            CHECK(sgd == NULL);
        }
        yoke_tensor_release(x);
    }
}

static void options_are_written_in_the_size_of_the_caller(void)
{
    union {
        yoke_sgd_options options;
        unsigned char bytes[2 * sizeof(yoke_sgd_options)];
    } place;
    yoke_sgd_options options = options_of(0.5, 0.25);
    yoke_optimizer *sgd = NULL;
    yoke_tensor *x = leaf();
    uint32_t size;
    size_t i;
    OK(yoke_sgd_create(&options, &sgd));
    OK(yoke_sgd_add_group(sgd, &x, 1, NULL));
    for (size = sizeof(uint32_t); size < sizeof place; ++size) {
        memset(place.bytes, 0xA5, sizeof place);
        memcpy(place.bytes, &size, sizeof size);
        OK(yoke_sgd_get_options(sgd, 0, &place.options));
        CHECK(place.options.struct_size == size);
        for (i = size; i < sizeof place; ++i) CHECK(place.bytes[i] == 0xA5);
        for (i = sizeof options; i < size; ++i) CHECK(place.bytes[i] == 0);
        if (size >= sizeof options) CHECK(place.options.momentum == 0.25);
    }
    yoke_optimizer_release(sgd);
    yoke_tensor_release(x);
}

static void options_out_of_range_are_named(void)
{
    yoke_sgd_options options = options_of(-0.5, 0);
    yoke_optimizer *sgd = NULL;
    FAILS(yoke_sgd_create(&options, &sgd), YOKE_E_VALUE, "'lr' is -0.5");
    options = options_of(0.5, 0);
    options.nesterov = 1;
    FAILS(yoke_sgd_create(&options, &sgd), YOKE_E_VALUE, "momentum");
    options.struct_size = 0x80000000u;
    FAILS(yoke_sgd_create(&options, &sgd), YOKE_E_VALUE,
          "struct_size of argument 'defaults' is 2147483648");
    FAILS(yoke_sgd_create(NULL, &sgd), YOKE_E_VALUE, "'defaults' is NULL");
    CHECK(sgd == NULL);
}

int main(void)
{
    RUN(gradients_add_up_until_they_are_zeroed);
    RUN(grad_returns_gradients_and_leaves_the_leaves_alone);
    RUN(misuse_of_autograd_is_refused);
    RUN(the_grad_mode_returns_what_it_was);
    RUN(sgd_steps_with_momentum);
    RUN(the_learning_rate_may_follow_a_schedule);
    RUN(options_of_every_size_are_read_or_refused);
    RUN(options_are_written_in_the_size_of_the_caller);
    RUN(options_out_of_range_are_named);
    return report();
}
