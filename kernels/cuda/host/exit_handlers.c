/*
 * No handler of this module runs when the process ends. The runtime registers some while the module loads, one for each
 * file of kernels, and exit() in one thread runs those that are there while another still loads the rest: it then
 * registers kernels in tables that are gone. What the handlers would free, the driver frees with the process.
 *
 * Bound within the module, whose symbols are hidden; nobody else's handlers are concerned.
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
