/*
 * fashion.h: what fashion_mnist and ddp_fashion have in common: pictures, the network, time and progress.
 */
#ifndef FASHION_H
#define FASHION_H

#include "library.h"

#define LAYERS 3

typedef struct {
    yoke_tensor *images; /* [N, 784], one byte a pixel */
    yoke_tensor *labels; /* [N] */
    int64_t count;
} Part;

typedef struct {
    yoke_tensor *params[2 * LAYERS]; /* weight and bias of each layer */
} Net;

/* Seconds. */
double now(void);

void show_progress(int64_t done, int64_t total);

/* The first `limit` pictures of a file, and their kinds. */
Part load_part(const char *folder, const char *images, const char *labels, long limit);
void release_part(Part part);

Net make_net(void);
void release_net(Net *net);

/* Pictures of one byte a pixel to ten numbers each. Takes over `x`. */
yoke_tensor *forward(const Net *net, yoke_tensor *x);

/* The mean loss over some pictures, with mixed precision where it is asked for. Takes over `x`. */
yoke_tensor *loss_of(const Net *net, const char *amp, yoke_tensor *x, yoke_tensor *target);

/* The learning rate goes from 0.1 down to 0. */
yoke_state *make_schedule(int64_t steps);

#endif /* FASHION_H */
