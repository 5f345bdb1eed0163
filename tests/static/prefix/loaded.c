/* Program of a stranger, built only against the headers of an install prefix: an op through a libyoke found at run
 * time, by the table of functions. */
#include <dlfcn.h>
#include <stdio.h>
#include <yoke/yoke.h>

typedef const yoke_api *(*get_api_fn)(uint32_t, uint32_t);

static const yoke_api *load(void)
{
    union {
        void *symbol;
        get_api_fn get_api; /* C has no cast from an object's pointer to a function's */
    } entry;
    void *library = dlopen("libyoke.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return NULL;
    }
    entry.symbol = dlsym(library, "yoke_get_api");
    return entry.symbol ? entry.get_api(YOKE_VERSION_MAJOR, YOKE_VERSION_MINOR) : NULL;
}

int main(void)
{
    const float data[3] = {-1.0f, 0.0f, 2.5f};
    const int64_t shape[1] = {3};
    float result[3] = {0.0f, 0.0f, 0.0f};
    yoke_device *cpu = NULL;
    yoke_tensor *x = NULL;
    yoke_tensor *y = NULL;
    const yoke_api *yoke = load();
    if (yoke == NULL) return 1;
    if (yoke->device_open("cpu", &cpu) ||
        yoke->tensor_from_data(data, sizeof data, shape, 1, YOKE_F32, cpu, &x) ||
        yoke->relu(x, &y) || yoke->tensor_copy_to_host(y, result, sizeof result)) {
        fprintf(stderr, "%s\n", yoke->last_error()->message);
        return 1;
    }
    yoke->tensor_release(x);
    yoke->tensor_release(y);
    yoke->device_release(cpu);
    printf("%g %g %g\n", (double)result[0], (double)result[1], (double)result[2]);
    return 0;
}
