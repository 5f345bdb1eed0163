/*
 * options.h: the options of fashion_mnist; one that cannot be used ends the program.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

typedef struct {
    const char *device, *data, *amp;
    long epochs, threads, seed, limit, losses;
} Options;

Options read_options(int argc, char **argv);

#endif /* OPTIONS_H */
