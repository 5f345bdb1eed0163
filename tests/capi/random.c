/* Random numbers from C: seeds, and places in a stream that are kept, put back and exchanged. */
#include "check.h"

static const int64_t five[1] = {5};

static void draw(float *values)
{
    yoke_tensor *x = NULL;
    OK(yoke_rand(five, 1, YOKE_F32, NULL, NULL, &x));
    OK(yoke_tensor_copy_to_host(x, values, 5 * sizeof(float)));
    yoke_tensor_release(x);
}

static void check_same(const float *a, const float *b)
{
    CHECK(memcmp(a, b, 5 * sizeof(float)) == 0);
}

static void a_place_that_is_put_back_gives_the_same_numbers_again(void)
{
    float first[5], second[5], again[5];
    uint64_t seed = 0, offset = 0, later = 0;
    OK(yoke_manual_seed(17));
    draw(first);
    OK(yoke_get_rng_state(&seed, &offset));
    CHECK(seed == 17 && offset > 0);
    draw(second);
    OK(yoke_get_rng_state(&seed, &later));
    CHECK(seed == 17 && later > offset);
    OK(yoke_set_rng_state(seed, offset));
    draw(again);
    check_same(second, again);
    OK(yoke_set_rng_state(17, 0));
    draw(again);
    check_same(first, again);
}

static void two_streams_are_kept_apart_by_exchanging_their_places(void)
{
    float of_one[2][5], of_two[5], got[5];
    uint64_t seed = 0, offset = 0;
    OK(yoke_manual_seed(2));
    draw(of_two);
    OK(yoke_manual_seed(1));
    draw(of_one[0]);
    draw(of_one[1]);
    OK(yoke_manual_seed(1));
    draw(got);
    check_same(got, of_one[0]);
    OK(yoke_get_rng_state(&seed, &offset));
    OK(yoke_set_rng_state(2, 0));
    draw(got);
    check_same(got, of_two);
    OK(yoke_set_rng_state(seed, offset));
    draw(got);
    check_same(got, of_one[1]);
}

static void draw_from(yoke_generator *generator, float *values)
{
    yoke_tensor *x = NULL;
    OK(yoke_rand(five, 1, YOKE_F32, NULL, generator, &x));
    OK(yoke_normal_(x, 0, 1, generator));
    OK(yoke_tensor_copy_to_host(x, values, 5 * sizeof(float)));
    yoke_tensor_release(x);
}

static void a_generator_is_drawn_from_instead_of_the_threads_stream(void)
{
    float want[2][5], got[5];
    uint64_t seed = 0, offset = 0;
    yoke_generator generator = {7, 0};
    OK(yoke_manual_seed(7));
    draw_from(NULL, want[0]);
    draw_from(NULL, want[1]);
    OK(yoke_get_rng_state(&seed, &offset));
    draw_from(&generator, got);
    check_same(got, want[0]);
    const yoke_generator kept = generator;
    draw_from(&generator, got);
    check_same(got, want[1]);
    CHECK(generator.seed == 7 && generator.offset == offset);
    generator = kept;
    draw_from(&generator, got);
    check_same(got, want[1]);
    CHECK(kept.offset == offset / 2);
}

static void a_capture_refuses_a_generator(void)
{
    yoke_generator generator = {7, 0};
    yoke_graph *graph = NULL;
    yoke_tensor *x = NULL;
    OK(yoke_graph_create(NULL, &graph));
    OK(yoke_graph_begin(graph));
    FAILS(yoke_rand(five, 1, YOKE_F32, NULL, &generator, &x), YOKE_E_STATE,
          "rand: argument 'generator' is given in a capture");
    OK(yoke_graph_end(graph));
    CHECK(generator.offset == 0);
    yoke_graph_release(graph);
}

/* A place is 64 bits that go round, in a replay as well: sanitizers look on. */
static void replays_draw_behind_the_last_place_too(void)
{
    const int64_t shape[] = {5};
    float first[5], second[5];
    yoke_graph *graph = NULL;
    yoke_tensor *drawn = NULL, *more = NULL;
    OK(yoke_graph_create(NULL, &graph));
    OK(yoke_graph_begin(graph));
    OK(yoke_rand(shape, 1, YOKE_F32, NULL, NULL, &drawn));
    OK(yoke_rand(shape, 1, YOKE_F32, NULL, NULL, &more));
    OK(yoke_graph_end(graph));
    for (int i = 0; i < 2; ++i) {
        OK(yoke_set_rng_state(3, INT64_MAX));
        OK(yoke_graph_replay(graph));
        OK(yoke_tensor_copy_to_host(more, i ? second : first, sizeof first));
    }
    check_same(first, second);
    yoke_tensor_release(drawn);
    yoke_tensor_release(more);
    yoke_graph_release(graph);
}

static void a_missing_place_is_named(void)
{
    uint64_t seed = 0;
    FAILS(yoke_get_rng_state(NULL, &seed), YOKE_E_VALUE, "'seed'");
    FAILS(yoke_get_rng_state(&seed, NULL), YOKE_E_VALUE, "'offset'");
}

static void threads_are_counted_and_set_for_the_calling_thread(void)
{
    const int32_t before = yoke_get_num_threads();
    CHECK(before >= 1);
    OK(yoke_set_num_threads(1));
    CHECK(yoke_get_num_threads() == 1);
    OK(yoke_set_num_threads(0));
    CHECK(yoke_get_num_threads() == before);
    FAILS(yoke_set_num_threads(-1), YOKE_E_VALUE, "-1");
}

static void bounds_that_a_dtype_cannot_keep_are_refused(void)
{
    yoke_tensor *x = NULL, *like = NULL;
    OK(yoke_randint(0, 2048, five, 1, YOKE_F16, NULL, NULL, &like));
    FAILS(yoke_randint(0, 4100, five, 1, YOKE_F16, NULL, NULL, &x), YOKE_E_VALUE,
          "randint: [0, 4100) does not fit into float16");
    FAILS(yoke_randint_like(like, 0, 4100, YOKE_NONE, NULL, NULL, &x), YOKE_E_VALUE,
          "randint_like: [0, 4100) does not fit into float16");
    yoke_tensor_release(like);
}

int main(void)
{
    RUN(a_place_that_is_put_back_gives_the_same_numbers_again);
    RUN(two_streams_are_kept_apart_by_exchanging_their_places);
    RUN(a_generator_is_drawn_from_instead_of_the_threads_stream);
    RUN(a_capture_refuses_a_generator);
    RUN(replays_draw_behind_the_last_place_too);
    RUN(a_missing_place_is_named);
    RUN(bounds_that_a_dtype_cannot_keep_are_refused);
    RUN(threads_are_counted_and_set_for_the_calling_thread);
    return report();
}
