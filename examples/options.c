#include "options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

static long read_number(const char *name, const char *text)
{
    char *end;
    errno = 0;
    const long value = strtol(text, &end, 10);
    if (end != text && !*end && !errno) return value; /* too large a one is ERANGE */
    fprintf(stderr, "%s is '%s'; it must be a whole number of 64 bits\n", name, text);
    exit(1);
}

static void check_least(const char *name, long value, long least)
{
    if (value >= least) return;
    fprintf(stderr, "%s is %ld; it must be at least %ld\n", name, value, least);
    exit(1);
}

static void show_help(void)
{
    puts(
        "usage: fashion_mnist [option value]... [--losses]\n\n"
        "  --device auto    where to train: \"cpu\", \"cuda:1\" or any other spec of a device\n"
        "  --amp off        mixed precision: off, bf16 or f16\n"
        "  --epochs 3       number of passes over all pictures\n"
        "  --threads 0      CPU threads; 0: all that are granted\n"
        "  --seed 0         seed of the weights and of the order of the pictures\n"
        "  --limit N        train only with the first N pictures\n"
        "  --data FOLDER    folder of the data set\n"
        "  --losses         print the loss of every step, in hexadecimal\n"
        "  --save FOLDER    folder of the saved run; a new start continues from there\n"
        "  --every 100      steps from one save to the next");
    exit(0);
}

enum { KNOWN = 9 };

/* `every_given` NULL: --every was not. */
static void check_options(Options *o, const char *every_given)
{
    if (strcmp(o->amp, "off") && strcmp(o->amp, "bf16") && strcmp(o->amp, "f16")) {
        fprintf(stderr, "--amp is '%s'; it must be off, bf16 or f16\n", o->amp);
        exit(1);
    }
    if (every_given && !o->save) {
        fprintf(stderr,
                "--every is %ld, and there is no folder to save to; give --save FOLDER too\n",
                o->every);
        exit(1);
    }
    check_least("--every", o->every, 1);
    check_least("--epochs", o->epochs, 1);
    check_least("--limit", o->limit, 1);
    check_least("--threads", o->threads, 0);
}

Options read_options(int argc, char **argv)
{
    Options o = {.device = "auto",
                 .data = "/usr/share/datasets/fashion-mnist",
                 .amp = "off",
                 .epochs = 3,
                 .limit = LONG_MAX,
                 .every = 100};
    const char *every_given = NULL;
    const struct {
        const char *name, **text;
        long *number;
    } known[KNOWN] = {{"--device", &o.device, NULL},   {"--data", &o.data, NULL},
                      {"--amp", &o.amp, NULL},         {"--epochs", NULL, &o.epochs},
                      {"--threads", NULL, &o.threads}, {"--seed", NULL, &o.seed},
                      {"--limit", NULL, &o.limit},     {"--save", &o.save, NULL},
                      {"--every", NULL, &o.every}};
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--losses") == 0) {
            o.losses = 1;
            continue;
        }
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) show_help();
        while (k < KNOWN && strcmp(argv[i], known[k].name)) k++;
        if (k == KNOWN || ++i == argc)
            fail(
                "options are --device --epochs --threads --seed --limit --data --amp --save --every --losses");
        if (known[k].number == &o.every) every_given = argv[i];
        if (known[k].text)
            *known[k].text = argv[i];
        else
            *known[k].number = read_number(known[k].name, argv[i]);
    }
    check_options(&o, every_given);
    return o;
}
