/*
 * atexit without effect, so no handler of this module runs when the process ends. The runtime registers a handler for
 * each file of kernels while the module loads. If exit() in a thread runs these handlers while another thread still
 * loads the module, that thread registers kernels in destroyed tables. The driver frees all memory of the handlers
 * with the process.
 *
 * The functions are bound within the module, whose symbols are hidden. Handlers of other libraries are not affected.
 */
int atexit(void (*handler)(void));
int __cxa_atexit(void (*handler)(void *), void *argument, void *library);

int atexit(void (*handler)(void))
{
    (void)handler;
    return 0;
}

int __cxa_atexit(void (*handler)(void *), void *argument, void *library)
{
    (void)handler;
    (void)argument;
    (void)library;
    return 0;
}
