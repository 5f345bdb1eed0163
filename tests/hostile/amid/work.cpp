#include "work.h"

#include <yoke/yoke.h>

#include <cmath>

namespace hostile {

const char *const kKindNames[kKinds] = {"adds",        "products",     "training", "replays",
                                        "inventories", "explanations", "blocks",   "events",
                                        "autocast",    "errors"};

namespace {

// Keeps whether all calls succeeded; releases what was made.
struct Calls {
    bool ending;
    bool good = true;
    bool ok(yoke_status status)
    {
        if (status != YOKE_OK && !ending) good = false;
        return status == YOKE_OK;
    }
};

struct Held {
    yoke_tensor *tensor = nullptr;
    ~Held() { yoke_tensor_release(tensor); }
    operator yoke_tensor *() const { return tensor; }
    yoke_tensor **operator&() { return &tensor; }
};

bool full(Calls &calls, int64_t rows, int64_t columns, double value, Held &out)
{
    const int64_t shape[] = {rows, columns};
    yoke_scalar scalar{YOKE_ARG_FLOAT, 0, {.f = value}};
    return calls.ok(yoke_full(shape, 2, &scalar, YOKE_F32, nullptr, &out));
}

// Every element is this.
void holds(Calls &calls, yoke_tensor *x, double wanted)
{
    Held sum;
    double value = 0;
    if (calls.ok(yoke_mean(x, nullptr, 0, 0, YOKE_NONE, &sum)) &&
        calls.ok(yoke_tensor_item_f64(sum, &value)))
        if (std::fabs(value - wanted) > 1e-3 * std::fabs(wanted) + 1e-6) calls.good = false;
}

void adds(Calls &calls)
{
    Held x, y;
    if (full(calls, 3, 5, 2, x) && calls.ok(yoke_add(x, x, &y))) holds(calls, y, 4);
}

void products(Calls &calls)
{
    Held x, y;  // large enough for a team
    if (full(calls, 160, 160, 0.5, x) && calls.ok(yoke_matmul(x, x, &y))) holds(calls, y, 40);
}

void training(Calls &calls)
{
    Held x, y, loss;
    yoke_optimizer *optimizer = nullptr;
    yoke_sgd_options options{sizeof options, 0, 0.5, 0.9, 0, 0, 0};
    if (!full(calls, 4, 4, 1, x) || !calls.ok(yoke_tensor_set_requires_grad(x, 1))) return;
    yoke_tensor *params[] = {x};
    if (calls.ok(yoke_sgd_create(&options, &optimizer)) &&
        calls.ok(yoke_sgd_add_group(optimizer, params, 1, nullptr)) &&
        calls.ok(yoke_mul(x, x, &y)) && calls.ok(yoke_sum(y, nullptr, 0, 0, YOKE_NONE, &loss)) &&
        calls.ok(yoke_backward(loss, nullptr, 0)) && calls.ok(yoke_optimizer_step(optimizer)))
        holds(calls, x, 0);
    yoke_optimizer_release(optimizer);
}

void replays(Calls &calls)
{
    Held x;
    yoke_graph *graph = nullptr;
    yoke_scalar one{YOKE_ARG_INT, 0, {.i = 1}};
    if (!full(calls, 2, 2, 1, x) || !calls.ok(yoke_graph_create(nullptr, &graph))) return;
    if (calls.ok(yoke_graph_begin(graph)) && calls.ok(yoke_add_scalar_(x, &one)) &&
        calls.ok(yoke_graph_end(graph)) && calls.ok(yoke_graph_replay(graph)) &&
        calls.ok(yoke_graph_replay(graph)))
        holds(calls, x, 3);
    yoke_graph_release(graph);
}

void inventories(Calls &calls)
{
    yoke_inventory *inventory = nullptr;
    const char *text = nullptr;
    if (calls.ok(yoke_inventory_take(&inventory)))
        calls.ok(yoke_inventory_fact(inventory, "driver", &text));
    yoke_inventory_release(inventory);
}

void explanations(Calls &calls)
{
    yoke_explanation *explanation = nullptr;
    if (calls.ok(yoke_explain("auto", &explanation)) && yoke_explanation_count(explanation) < 1)
        calls.good = false;
    yoke_explanation_release(explanation);
}

void blocks(Calls &calls)
{
    void *block = nullptr;
    if (calls.ok(yoke_alloc(100000, nullptr, nullptr, &block))) calls.ok(yoke_free(block));
    calls.ok(yoke_empty_cache(nullptr));
}

void events(Calls &calls)
{
    yoke_event *start = nullptr;
    yoke_stream *stream = nullptr;
    if (calls.ok(yoke_event_create(1, &start)) && calls.ok(yoke_current_stream(nullptr, &stream)) &&
        calls.ok(yoke_event_record(start, stream)))
        calls.ok(yoke_stream_wait_event(stream, start)), calls.ok(yoke_event_synchronize(start));
    yoke_stream_release(stream);
    yoke_event_release(start);
}

void autocast(Calls &calls)
{
    Held x, y;
    yoke_autocast *region = nullptr;
    if (!full(calls, 8, 8, 0.5, x) || !calls.ok(yoke_tensor_set_requires_grad(x, 1))) return;
    if (!calls.ok(yoke_autocast_create(1, YOKE_BF16, 1, &region))) return;
    yoke_autocast *before = yoke_autocast_swap(region);
    if (calls.ok(yoke_matmul(x, x, &y))) {
        Held wide;
        if (calls.ok(yoke_cast(y, YOKE_F32, &wide))) holds(calls, wide, 2);
    }
    yoke_autocast_swap(before);
    yoke_autocast_release(region);
}

void errors(Calls &calls)
{
    yoke_device *device = nullptr;
    if (yoke_device_open("nowhere", &device) != YOKE_E_VALUE && !calls.ending) calls.good = false;
    yoke_device_release(device);
}

}  // namespace

bool do_piece(int kind, bool ending)
{
    static void (*const kPieces[kKinds])(Calls &) = {adds,        products,     training, replays,
                                                     inventories, explanations, blocks,   events,
                                                     autocast,    errors};
    Calls calls{ending};
    kPieces[kind](calls);
    return calls.good;
}

}  // namespace hostile
