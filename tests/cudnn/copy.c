/* The main library of a cuDNN copy, for the search: a library with versions and no other function. */
#include <stddef.h>

size_t cudnnGetVersion(void)
{
    return VERSION;
}
size_t cudnnGetCudartVersion(void)
{
    return CUDART;
}

int cudnnGetErrorString, cudnnGetLastErrorString, cudnnCreate, cudnnDestroy, cudnnSetStream;
int cudnnBackendCreateDescriptor, cudnnBackendDestroyDescriptor, cudnnBackendSetAttribute;
int cudnnBackendGetAttribute, cudnnBackendFinalize, cudnnBackendExecute;
