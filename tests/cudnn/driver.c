/* A libcuda.so.1 with which cuDNN makes plans on a machine without a GPU. cuDNN gives compiled code to the driver for
 * loading. The toolkit's stub refuses the load; here only the load succeeds. cuDNN looks these names up. */
#define YOKE_UNKNOWN 999

static int load(void **out)
{
    static int something;
    *out = &something;
    return 0;
}

int cuLibraryLoadData(void **library)
{
    return load(library);
}
int cuLibraryLoadFromFile(void **library)
{
    return load(library);
}
int cuLibraryGetKernel(void **kernel)
{
    return load(kernel);
}
int cuKernelGetFunction(void **function)
{
    return load(function);
}
int cuLibraryUnload(void)
{
    return 0;
}
int cuKernelSetAttribute(void)
{
    return 0;
}
int cuFuncSetAttribute(void)
{
    return 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

int cuGetErrorName(int error, const char **text)
{
    (void)error;
    *text = "a failure of the driver that tests have";
    return 0;
}

int cuGetErrorString(int error, const char **text)
{
    return cuGetErrorName(error, text);
}

#define YOKE_REFUSE(name)    \
    int name(void)           \
    {                        \
        return YOKE_UNKNOWN; \
    }
YOKE_REFUSE(cuInit)
YOKE_REFUSE(cuGetProcAddress)
YOKE_REFUSE(cuGetProcAddress_v2)
YOKE_REFUSE(cuCtxGetCurrent)
YOKE_REFUSE(cuCtxGetLimit)
YOKE_REFUSE(cuCtxPopCurrent)
YOKE_REFUSE(cuCtxPushCurrent)
YOKE_REFUSE(cuStreamGetCtx)
YOKE_REFUSE(cuLinkCreate)
YOKE_REFUSE(cuLinkAddData)
YOKE_REFUSE(cuLinkComplete)
YOKE_REFUSE(cuLinkDestroy)
YOKE_REFUSE(cuLaunchKernel)
YOKE_REFUSE(cuLaunchKernelEx)
YOKE_REFUSE(cuLaunchCooperativeKernel)
YOKE_REFUSE(cuDeviceGet)
YOKE_REFUSE(cuDeviceGetCount)
YOKE_REFUSE(cuKernelGetAttribute)
YOKE_REFUSE(cuOccupancyMaxPotentialClusterSize)
