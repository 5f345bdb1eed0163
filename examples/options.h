/* options.h: options of fashion_mnist; an invalid option ends the program. */
#ifndef OPTIONS_H
#define OPTIONS_H

typedef struct {
    const char *device, *data, *amp, *save; /* save NULL: nothing is saved */
    long epochs, threads, seed, limit, every, losses;
} Options;

Options read_options(int argc, char **argv);

#endif /* OPTIONS_H */
