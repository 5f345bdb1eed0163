/* The table of ops: what a host without a generator sees and calls. */
#include "check.h"

static yoke_arg tensor_arg(yoke_tensor *tensor)
{
    yoke_arg arg = {YOKE_ARG_TENSOR, 0, {0}};
    arg.v.tensor = tensor;
    return arg;
}

static yoke_arg int_arg(int64_t value)
{
    yoke_arg arg = {YOKE_ARG_INT, 0, {0}};
    arg.v.i = value;
    return arg;
}

static yoke_arg float_arg(double value)
{
    yoke_arg arg = {YOKE_ARG_FLOAT, 0, {0}};
    arg.v.f = value;
    return arg;
}

static int32_t find(const char *name)
{
    int32_t op = -1;
    OK(yoke_op_find(name, &op));
    return op;
}

static yoke_tensor *two_by_two(void)
{
    const float values[4] = {1.0f, 2.0f, 3.0f, 4.0f};
    const int64_t shape[2] = {2, 2};
    return floats(values, shape, 2);
}

static void every_op_is_described_in_full(void)
{
    int32_t i, k, found;
    CHECK(yoke_op_count() > 40);
    for (i = 0; i < yoke_op_count(); ++i) {
        const yoke_op *op = yoke_op_info(i);
        CHECK(op != NULL && op->id == i && op->struct_size == sizeof(yoke_op));
        CHECK(op->name[0] != '_' && op->doc[0] && op->family[0]);
        CHECK(strncmp(op->signature, op->name, strlen(op->name)) == 0);
        CHECK(op->mut_arg < op->arg_count && (op->mut_arg < 0 || op->result_count == 0));
        for (k = 0; k < op->arg_count; ++k) CHECK(op->args[k].name[0] && op->args[k].type[0]);
        OK(yoke_op_find(op->name, &found));
        CHECK(found == i);
    }
}

static void a_form_of_an_op_is_found_and_called_by_name(void)
{
    const int32_t op = find("_add_scaled"), between = find("_clamp_between");
    yoke_tensor *x = two_by_two(), *out = NULL, *sum = NULL;
    yoke_arg args[3] = {tensor_arg(x), tensor_arg(x), float_arg(2.0)};
    double value = 0;
    CHECK(op >= yoke_op_count() && yoke_op_info(op)->id == op);
    CHECK(strcmp(yoke_op_info(op)->name, "_add_scaled") == 0);
    OK(yoke_op_invoke(op, args, 3, &out, 1));
    OK(yoke_sum(out, NULL, 0, 0, YOKE_NONE, &sum));
    OK(yoke_tensor_item_f64(sum, &value));
    CHECK(value == 30.0);
    yoke_tensor_release(sum);
    yoke_tensor_release(out);
    OK(yoke_op_invoke(between, args, 2, &out, 1)); /* the upper bound is absent */
    yoke_tensor_release(out);
    FAILS(yoke_op_invoke(op, args, 2, &out, 1), YOKE_E_VALUE, "argument 'alpha' is missing");
    yoke_tensor_release(x);
}

static void unknown_ops_are_refused_by_name(void)
{
    int32_t op = 12;
    FAILS(yoke_op_find("abracadabra", &op), YOKE_E_VALUE, "no op 'abracadabra'");
    FAILS(yoke_op_find("_sgd", &op), YOKE_E_VALUE, "no op '_sgd'");
    CHECK(op == 12);
    CHECK(yoke_op_info(-1) == NULL && yoke_op_info(yoke_op_count()) == NULL);
    FAILS(yoke_op_invoke(yoke_op_count(), NULL, 0, NULL, 0), YOKE_E_VALUE, "there is no op");
}

static void defaults_fill_what_is_missing_or_none(void)
{
    const float rows[2] = {3.0f, 7.0f};
    const int64_t one = 1;
    yoke_tensor *x = two_by_two(), *out = NULL;
    yoke_arg args[4] = {{YOKE_ARG_NONE, 0, {0}},
                        {YOKE_ARG_NONE, 0, {0}},
                        {YOKE_ARG_NONE, 0, {0}},
                        {YOKE_ARG_NONE, 0, {0}}};
    const float all[1] = {10.0f};
    args[0] = tensor_arg(x);
    OK(yoke_op_invoke(find("sum"), args, 1, &out, 1));
    check_floats(out, all, 1);
    yoke_tensor_release(out);
    args[1].kind = YOKE_ARG_INTS;
    args[1].count = 1;
    args[1].v.ints = &one;
    OK(yoke_op_invoke(find("sum"), args, 4, &out, 1));
    check_floats(out, rows, 2);
    yoke_tensor_release(out);
    yoke_tensor_release(x);
}

static void an_operand_is_a_tensor_or_a_number(void)
{
    const float more[4] = {3.0f, 4.0f, 5.0f, 6.0f}, less[4] = {1.5f, 0.5f, -0.5f, -1.5f};
    yoke_tensor *x = two_by_two(), *out = NULL;
    yoke_arg args[2];
    args[0] = tensor_arg(x);
    args[1] = int_arg(2);
    OK(yoke_op_invoke(find("add"), args, 2, &out, 1));
    check_floats(out, more, 4);
    yoke_tensor_release(out);
    args[0] = float_arg(2.5);
    args[1] = tensor_arg(x);
    OK(yoke_op_invoke(find("sub"), args, 2, &out, 1));
    check_floats(out, less, 4);
    yoke_tensor_release(out);
    yoke_tensor_release(x);
}

static void a_list_of_floats_is_an_argument(void)
{
    const double scales[2] = {1.0, 2.5};
    const int64_t image[4] = {1, 1, 1, 2};
    yoke_tensor *x = NULL, *out = NULL;
    yoke_arg args[3] = {{0}};
    OK(yoke_ones(image, 4, YOKE_F32, NULL, &x));
    args[0] = tensor_arg(x);
    args[2] = (yoke_arg){YOKE_ARG_FLOATS, 2, {.floats = scales}};
    OK(yoke_op_invoke(find("interpolate"), args, 3, &out, 1));
    CHECK(yoke_tensor_shape(out)[2] == 1 && yoke_tensor_shape(out)[3] == 5);
    yoke_tensor_release(out);
    args[2].count = -1;
    FAILS(yoke_op_invoke(find("interpolate"), args, 3, &out, 1), YOKE_E_VALUE,
          "'scale_factor' is -1");
    args[2] = (yoke_arg){YOKE_ARG_FLOATS, 2, {0}};
    FAILS(yoke_op_invoke(find("interpolate"), args, 3, &out, 1), YOKE_E_VALUE,
          "'scale_factor' is NULL");
    args[2] = (yoke_arg){YOKE_ARG_INTS, 4, {.ints = image}};
    FAILS(yoke_op_invoke(find("interpolate"), args, 3, &out, 1), YOKE_E_TYPE,
          "a list of floats or nothing");
    OK(yoke_interpolate(x, NULL, 0, scales, 2, NULL, 0, 0, &out));
    yoke_tensor_release(out);
    FAILS(yoke_interpolate(x, NULL, 0, NULL, 2, NULL, 0, 0, &out), YOKE_E_VALUE, "scale_factor");
    FAILS(yoke_interpolate(x, NULL, 0, scales, -1, NULL, 0, 0, &out), YOKE_E_VALUE, "scale_factor");
    yoke_tensor_release(x);
}

static void an_in_place_op_returns_nothing_and_changes_its_argument(void)
{
    const float sevens[4] = {7.0f, 7.0f, 7.0f, 7.0f};
    const int32_t fill = find("fill_");
    yoke_tensor *x = two_by_two(), *out = NULL;
    yoke_arg args[2];
    args[0] = tensor_arg(x);
    args[1] = int_arg(7);
    CHECK(yoke_op_info(fill)->mut_arg == 0 && yoke_op_info(fill)->result_count == 0);
    OK(yoke_op_invoke(fill, args, 2, NULL, 0));
    check_floats(x, sevens, 4);
    FAILS(yoke_op_invoke(fill, args, 2, &out, 1), YOKE_E_VALUE,
          "fill_: 1 results are given; the op has 0");
    yoke_tensor_release(x);
}

static void wrong_arguments_name_op_and_argument(void)
{
    const int32_t softmax = find("softmax"), reshape = find("reshape");
    yoke_tensor *x = two_by_two(), *out = (yoke_tensor *)&out;
    yoke_arg args[4] = {{YOKE_ARG_NONE, 0, {0}},
                        {YOKE_ARG_NONE, 0, {0}},
                        {YOKE_ARG_NONE, 0, {0}},
                        {YOKE_ARG_NONE, 0, {0}}};
    FAILS(yoke_op_invoke(softmax, NULL, 0, &out, 1), YOKE_E_VALUE,
          "softmax: argument 'x' is missing");
    CHECK(out == NULL);
    args[0] = float_arg(1.0);
    FAILS(yoke_op_invoke(softmax, args, 1, &out, 1), YOKE_E_TYPE,
          "softmax: argument 'x' is a float");
    args[0] = tensor_arg(NULL);
    FAILS(yoke_op_invoke(softmax, args, 1, &out, 1), YOKE_E_VALUE, "argument 'x' is NULL");
    args[0] = tensor_arg(x);
    args[1] = float_arg(0.5);
    FAILS(yoke_op_invoke(softmax, args, 2, &out, 1), YOKE_E_TYPE,
          "softmax: argument 'axis' is a float");
    FAILS(yoke_op_invoke(softmax, args, 4, &out, 1), YOKE_E_VALUE,
          "4 arguments are given; the op takes at most 3");
    FAILS(yoke_op_invoke(softmax, args, -1, &out, 1), YOKE_E_VALUE, "-1 arguments");
    FAILS(yoke_op_invoke(softmax, NULL, 1, &out, 1), YOKE_E_VALUE, "at NULL");
    FAILS(yoke_op_invoke(softmax, args, 1, NULL, 1), YOKE_E_VALUE, "at NULL");
    args[1].kind = YOKE_ARG_INTS;
    args[1].count = 2;
    args[1].v.ints = NULL;
    FAILS(yoke_op_invoke(reshape, args, 2, &out, 1), YOKE_E_VALUE,
          "reshape: argument 'shape' is NULL");
    args[1].count = -2;
    FAILS(yoke_op_invoke(reshape, args, 2, &out, 1), YOKE_E_VALUE, "is -2; it cannot be negative");
    yoke_tensor_release(x);
}

static void a_list_of_results_has_a_call_of_its_own(void)
{
    yoke_tensor *x = two_by_two(), *outs[2] = {x, x}, *out = NULL;
    yoke_arg args[2];
    const int64_t one = 1;
    int64_t count = -1;
    const int32_t split = find("split"), relu = find("relu");
    args[0] = tensor_arg(x);
    args[1].kind = YOKE_ARG_INTS;
    args[1].count = 1;
    args[1].v.ints = &one;
    CHECK(yoke_op_info(split)->result_count == -1);
    FAILS(yoke_op_invoke(split, args, 2, &out, 1), YOKE_E_VALUE, "yoke_op_invoke_list");
    FAILS(yoke_op_invoke_list(relu, args, 1, outs, 2, &count), YOKE_E_VALUE, "are not a list");
    FAILS(yoke_op_invoke_list(split, args, 2, outs, 1, &count), YOKE_E_VALUE, "2 results");
    CHECK(count == 2 && outs[0] == x && outs[1] == x);
    FAILS(yoke_op_invoke_list(split, args, 2, NULL, 2, &count), YOKE_E_VALUE, "'outs' is NULL");
    FAILS(yoke_op_invoke_list(split, args, 2, outs, 2, NULL), YOKE_E_VALUE, "'count' is NULL");
    OK(yoke_op_invoke_list(split, args, 2, outs, 2, &count));
    CHECK(count == 2 && yoke_tensor_numel(outs[0]) == 2 && yoke_shares_memory(outs[1], x) == 1);
    yoke_tensor_release(outs[0]);
    yoke_tensor_release(outs[1]);
    yoke_tensor_release(x);
}

/* An expanded axis is of any length. What does not fit is known before a view is made: or this would never end. */
static void a_list_is_counted_before_it_is_made(void)
{
    const char *const ops[] = {"unbind", "split", "chunk"};
    const int64_t one = 1, many = 1 << 24, shape[] = {INT64_C(1) << 40};
    yoke_tensor *x = NULL, *wide = NULL, *outs[1];
    int64_t count = 0;
    OK(yoke_ones(&one, 1, YOKE_F32, NULL, &x));
    for (int i = 0; i < 3; i++) {
        int32_t op = 0;
        yoke_arg args[2] = {{0}};
        OK(yoke_op_find(ops[i], &op));
        OK(yoke_expand(x, &many, 1, &wide));
        args[0] = tensor_arg(wide);
        args[1] = int_arg(i == 2 ? many : i);
        if (i == 1) args[1] = (yoke_arg){YOKE_ARG_INTS, 1, {.ints = &one}};
        FAILS(yoke_op_invoke_list(op, args, 2, outs, 1, &count), YOKE_E_VALUE, "16777216 results");
        CHECK(count == many);
        yoke_tensor_release(wide);
        OK(yoke_expand(x, shape, 1, &wide));
        args[0] = tensor_arg(wide);
        if (i == 2) args[1] = int_arg(shape[0]);
        FAILS(yoke_op_invoke_list(op, args, 2, outs, 1, &count), YOKE_E_VALUE, "at most 16777216");
        CHECK(count == 0);
        yoke_tensor_release(wide);
    }
    yoke_tensor_release(x);
}

static void the_arguments_of_the_caller_stay_as_they_are(void)
{
    yoke_tensor *x = two_by_two(), *out = NULL;
    yoke_arg args[2], before[2];
    args[0] = tensor_arg(x);
    args[1] = int_arg(-1);
    memcpy(before, args, sizeof args);
    OK(yoke_op_invoke(find("softmax"), args, 2, &out, 1));
    CHECK(memcmp(before, args, sizeof args) == 0);
    yoke_tensor_release(out);
    yoke_tensor_release(x);
}

int main(void)
{
    RUN(every_op_is_described_in_full);
    RUN(a_form_of_an_op_is_found_and_called_by_name);
    RUN(unknown_ops_are_refused_by_name);
    RUN(defaults_fill_what_is_missing_or_none);
    RUN(an_operand_is_a_tensor_or_a_number);
    RUN(a_list_of_floats_is_an_argument);
    RUN(an_in_place_op_returns_nothing_and_changes_its_argument);
    RUN(wrong_arguments_name_op_and_argument);
    RUN(a_list_of_results_has_a_call_of_its_own);
    RUN(a_list_is_counted_before_it_is_made);
    RUN(the_arguments_of_the_caller_stay_as_they_are);
    return report();
}
