/* Checkpoint scopes from C: kept tensors, policies, and every wrong way to close a scope. */
#include "check.h"

#include <pthread.h>

static const int64_t square[2] = {2, 2};
static const float numbers[4] = {0.5f, -1.0f, 2.0f, 0.25f};

/* exp(exp(x)) in scopes, one in the other where there are two policies; the gradient goes to `got`. */
static void run(const yoke_checkpoint_options *outer, const yoke_checkpoint_options *inner,
                float *got)
{
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL, *z = NULL, *sum = NULL, *grad = NULL;
    yoke_checkpoint *scopes[2] = {NULL, NULL};
    OK(yoke_tensor_set_requires_grad(x, 1));
    if (outer) OK(yoke_checkpoint_begin(outer, &scopes[0]));
    OK(yoke_exp(x, &y));
    if (inner) OK(yoke_checkpoint_begin(inner, &scopes[1]));
    OK(yoke_exp(y, &z));
    if (inner) OK(yoke_checkpoint_end(scopes[1]));
    if (outer) OK(yoke_checkpoint_end(scopes[0]));
    OK(yoke_sum(z, NULL, 0, 0, YOKE_NONE, &sum));
    yoke_tensor_release(y);
    yoke_tensor_release(z);
    OK(yoke_backward(sum, NULL, 0));
    OK(yoke_tensor_grad(x, &grad));
    OK(yoke_tensor_copy_to_host(grad, got, 16));
    yoke_tensor_release(grad);
    yoke_tensor_release(sum);
    yoke_tensor_release(x);
    yoke_checkpoint_release(scopes[1]);
    yoke_checkpoint_release(scopes[0]);
}

static int32_t asked;

static int32_t keep_the_first(void *user, const yoke_checkpoint_op *op)
{
    CHECK(user == &asked);
    CHECK(!strcmp(op->name, "exp") && op->ndim == 2 && op->shape[1] == 2);
    CHECK(op->dtype == YOKE_F32 && op->bytes == 16 && op->work > 0);
    return asked++ == 0 ? YOKE_CHECKPOINT_KEEP : YOKE_CHECKPOINT_RECOMPUTE;
}

static int32_t answer_nonsense(void *user, const yoke_checkpoint_op *op)
{
    (void)user;
    (void)op;
    return 7;
}

static void gradients_are_those_without_scopes(void)
{
    const char *const ops[] = {"exp"};
    const yoke_checkpoint_options policies[] = {
        {.struct_size = sizeof *policies},
        {.struct_size = sizeof *policies, .policy = "matmul"},
        {.struct_size = sizeof *policies, .policy = "ops", .ops = ops, .op_count = 1},
        {.struct_size = sizeof *policies,
         .policy = "function",
         .decide = keep_the_first,
         .user = &asked},
    };
    float wanted[4], got[4];
    run(NULL, NULL, wanted);
    for (int outer = 0; outer < 4; ++outer)
        for (int inner = -1; inner < 4; ++inner) {
            asked = 0;
            run(&policies[outer], inner < 0 ? NULL : &policies[inner], got);
            CHECK(!memcmp(got, wanted, sizeof got));
            if (outer == 3 && inner < 0) CHECK(asked == 2);
        }
}

static void a_scope_drops_what_its_policy_does_not_keep(void)
{
    const char *const ops[] = {"exp"};
    const yoke_checkpoint_options keep = {
        .struct_size = sizeof keep, .policy = "ops", .ops = ops, .op_count = 1};
    const int64_t shape[1] = {1 << 16};
    yoke_device *cpu = NULL;
    yoke_tensor *x = NULL;
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_ones(shape, 1, YOKE_F32, cpu, &x));
    OK(yoke_tensor_set_requires_grad(x, 1));
    for (int kept = 0; kept < 2; ++kept) {
        yoke_checkpoint *scope = NULL;
        yoke_tensor *y = NULL, *sum = NULL;
        int64_t before = 0, after = 0;
        OK(yoke_memory_allocated(cpu, &before));
        OK(yoke_checkpoint_begin(kept ? &keep : NULL, &scope));
        OK(yoke_exp(x, &y));
        OK(yoke_sum(y, NULL, 0, 0, YOKE_NONE, &sum));
        yoke_tensor_release(y);
        OK(yoke_checkpoint_end(scope));
        OK(yoke_memory_allocated(cpu, &after));
        CHECK((after - before >= shape[0] * 4) == kept);
        yoke_checkpoint_release(scope);
        OK(yoke_backward(sum, NULL, 0));
        yoke_tensor_release(sum);
    }
    yoke_tensor_release(x);
    yoke_device_release(cpu);
}

static void an_answer_that_is_none_closes_the_scope(void)
{
    const yoke_checkpoint_options options = {
        .struct_size = sizeof options, .policy = "function", .decide = answer_nonsense};
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL;
    yoke_checkpoint *scope = NULL;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_checkpoint_begin(&options, &scope));
    OK(yoke_exp(x, &y));
    FAILS(yoke_checkpoint_end(scope), YOKE_E_VALUE, "returned 7 for exp");
    CHECK(yoke_checkpoint_current() == NULL);
    FAILS(yoke_checkpoint_end(scope), YOKE_E_STATE, "already closed");
    OK(yoke_backward(y, x, 0));
    yoke_checkpoint_release(scope);
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

static void unknown_policies_are_refused(void)
{
    const char *const ops[] = {"gellu"};
    yoke_checkpoint_options options = {.struct_size = sizeof options, .policy = "mathmul"};
    yoke_checkpoint *scope = (yoke_checkpoint *)&ops;
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_VALUE, "did you mean 'matmul'");
    CHECK(scope == NULL);
    options.policy = "ops";
    options.ops = ops;
    options.op_count = 1;
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_VALUE, "did you mean 'gelu'");
    options.op_count = -1;
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_VALUE, "-1");
    options.policy = "function";
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_VALUE, "'decide' is NULL");
    yoke_memory_budget *budget = NULL;
    OK(yoke_memory_budget_create("0.5", &budget));
    const yoke_checkpoint_options moved = {
        .struct_size = sizeof moved, .offload = 7, .policy = "budget", .budget = budget};
    FAILS(yoke_checkpoint_begin(&moved, &scope), YOKE_E_VALUE, "'offload' is 7");
    yoke_memory_budget_release(budget);
    options.struct_size = 0;
    FAILS(yoke_checkpoint_begin(&options, &scope), YOKE_E_VALUE, "struct_size");
    FAILS(yoke_checkpoint_begin(NULL, NULL), YOKE_E_VALUE, "'out'");
    FAILS(yoke_checkpoint_end(NULL), YOKE_E_VALUE, "NULL");
    CHECK(yoke_checkpoint_current() == NULL);
}

static void *close_elsewhere(void *scope)
{
    CHECK(yoke_checkpoint_swap(scope) == NULL); /* refused: it is in force in another thread */
    CHECK(yoke_last_error()->status == YOKE_E_STATE && yoke_checkpoint_current() == NULL);
    FAILS(yoke_checkpoint_end(scope), YOKE_E_STATE, "where it was opened");
    return NULL;
}

static void scopes_close_in_order_once_and_where_they_began(void)
{
    yoke_checkpoint *outer = NULL, *inner = NULL;
    pthread_t thread;
    OK(yoke_checkpoint_begin(NULL, &outer));
    OK(yoke_checkpoint_begin(NULL, &inner));
    CHECK(yoke_checkpoint_current() == inner);
    FAILS(yoke_checkpoint_end(outer), YOKE_E_STATE, "close its inner scopes first");
    pthread_create(&thread, NULL, close_elsewhere, inner);
    pthread_join(thread, NULL);
    OK(yoke_checkpoint_end(inner));
    FAILS(yoke_checkpoint_end(inner), YOKE_E_STATE, "already closed");
    CHECK(yoke_checkpoint_swap(NULL) == outer);
    FAILS(yoke_checkpoint_end(outer), YOKE_E_STATE, "has no open scope");
    CHECK(yoke_checkpoint_swap(outer) == NULL);
    OK(yoke_checkpoint_end(outer));
    CHECK(yoke_checkpoint_swap(outer) == NULL); /* refused: it is closed */
    CHECK(yoke_checkpoint_current() == NULL);
    yoke_checkpoint_release(inner);
    yoke_checkpoint_release(outer);
}

static void the_last_handle_closes_a_scope_with_those_within(void)
{
    yoke_checkpoint *outer = NULL, *inner = NULL;
    OK(yoke_checkpoint_begin(NULL, &outer));
    OK(yoke_checkpoint_begin(NULL, &inner));
    CHECK(yoke_checkpoint_retain(outer) == outer);
    yoke_checkpoint_release(outer);
    CHECK(yoke_checkpoint_current() == inner);
    yoke_checkpoint_release(outer);
    CHECK(yoke_checkpoint_current() == NULL);
    yoke_checkpoint_release(inner);
}

static yoke_checkpoint *left_open;

static void *leave_open(void *x)
{
    yoke_tensor *y = NULL;
    OK(yoke_checkpoint_begin(NULL, &left_open));
    OK(yoke_exp(x, &y));
    OK(yoke_backward(y, x, 1)); /* within the open scope it works */
    return y;                   /* the thread ends with the scope open */
}

static void backward_asks_no_scope_that_another_thread_has_open(void)
{
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL;
    yoke_checkpoint *scope = NULL;
    pthread_t thread;
    void *made = NULL;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_checkpoint_begin(NULL, &scope));
    OK(yoke_exp(x, &y));
    CHECK(yoke_checkpoint_swap(NULL) == scope);
    FAILS(yoke_backward(y, x, 1), YOKE_E_STATE, "still open");
    CHECK(yoke_checkpoint_swap(scope) == NULL);
    OK(yoke_backward(y, x, 1));
    OK(yoke_checkpoint_end(scope));
    OK(yoke_backward(y, x, 0));
    yoke_tensor_release(y);
    yoke_checkpoint_release(scope);
    pthread_create(&thread, NULL, leave_open, x);
    pthread_join(thread, &made);
    yoke_checkpoint_release(left_open);
    yoke_tensor_release(made);
    yoke_tensor_release(x);
}

/* Nests two scopes and sets the inner scope aside, as host programs with coroutines do. `is_given_up`: the outer
 * scope's last handle is released, and the scope is closed after the inner scope. Else closing the outer scope is
 * refused until then. */
static void close_around_one_set_aside(int is_given_up)
{
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL, *z = NULL;
    yoke_checkpoint *outer = NULL, *inner = NULL;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_checkpoint_begin(NULL, &outer));
    OK(yoke_exp(x, &y));
    OK(yoke_checkpoint_begin(NULL, &inner));
    OK(yoke_exp(y, &z));
    CHECK(yoke_checkpoint_swap(outer) == inner);
    if (is_given_up)
        yoke_checkpoint_release(outer);
    else
        FAILS(yoke_checkpoint_end(outer), YOKE_E_STATE, "close its inner scopes first");
    CHECK(yoke_checkpoint_current() == (is_given_up ? NULL : outer));
    (void)yoke_checkpoint_swap(inner);
    yoke_tensor_release(y);
    OK(yoke_exp(z, &y));
    OK(yoke_checkpoint_end(inner));
    if (!is_given_up) OK(yoke_checkpoint_end(outer));
    CHECK(yoke_checkpoint_current() == NULL);
    OK(yoke_backward(y, x, 0));
    yoke_tensor_release(y);
    yoke_tensor_release(z);
    yoke_checkpoint_release(inner);
    if (!is_given_up) yoke_checkpoint_release(outer);
    yoke_tensor_release(x);
}

static void one_around_another_that_is_set_aside_waits_for_it(void)
{
    close_around_one_set_aside(0);
    close_around_one_set_aside(1);
}

static void one_that_is_given_up_asks_nobody(void)
{
    const yoke_checkpoint_options options = {.struct_size = sizeof options,
                                             .policy = "function",
                                             .decide = keep_the_first,
                                             .user = &asked};
    yoke_tensor *x = floats(numbers, square, 2), *y = NULL;
    yoke_checkpoint *scope = NULL;
    asked = 0;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_checkpoint_begin(&options, &scope));
    OK(yoke_exp(x, &y));
    yoke_checkpoint_release(scope);
    CHECK(asked == 0 && yoke_checkpoint_current() == NULL);
    OK(yoke_backward(y, x, 0));
    yoke_tensor_release(y);
    yoke_tensor_release(x);
}

static void what_changed_since_is_named(void)
{
    const float ones[4] = {1, 1, 1, 1};
    yoke_tensor *x = floats(numbers, square, 2), *w = floats(numbers, square, 2);
    yoke_tensor *product = NULL, *y = NULL;
    yoke_checkpoint *scope = NULL;
    OK(yoke_tensor_set_requires_grad(x, 1));
    OK(yoke_checkpoint_begin(NULL, &scope));
    OK(yoke_add(x, w, &product)); /* saves no tensor, so without a scope w may change */
    OK(yoke_exp(product, &y));
    OK(yoke_checkpoint_end(scope));
    yoke_tensor_release(product);
    OK(yoke_tensor_copy_from_host(w, ones, sizeof ones));
    FAILS(yoke_backward(y, x, 1), YOKE_E_STATE, "add must read operand 1");
    yoke_tensor_release(y);
    yoke_checkpoint_release(scope);
    yoke_tensor_release(w);
    yoke_tensor_release(x);
}

int main(void)
{
    RUN(gradients_are_those_without_scopes);
    RUN(a_scope_drops_what_its_policy_does_not_keep);
    RUN(an_answer_that_is_none_closes_the_scope);
    RUN(unknown_policies_are_refused);
    RUN(scopes_close_in_order_once_and_where_they_began);
    RUN(the_last_handle_closes_a_scope_with_those_within);
    RUN(backward_asks_no_scope_that_another_thread_has_open);
    RUN(one_around_another_that_is_set_aside_waits_for_it);
    RUN(one_that_is_given_up_asks_nobody);
    RUN(what_changed_since_is_named);
    return report();
}
