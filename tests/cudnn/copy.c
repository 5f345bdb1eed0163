/* The file of a cuDNN by which it is found: it tells its versions, and can do nothing else. */
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
