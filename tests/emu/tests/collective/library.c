/* A libnccl.so.2 that does not serve: it tells its version, and has nothing else. */
int ncclGetVersion(int *version);
int ncclGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}
