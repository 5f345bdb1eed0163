# yoke_engines: the libraries libyoke stands on.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# Found by name, since Debian's CMake package of oneDNN also asks for OpenCL's headers, which
# nothing here needs.
find_path(YOKE_DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
find_library(YOKE_DNNL_LIBRARY NAMES dnnl REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES
    IMPORTED_LOCATION ${YOKE_DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${YOKE_DNNL_INCLUDE})

add_library(yoke_engines INTERFACE)
if(YOKE_OPENMP)
    # OpenMP before oneDNN: clang's runtime then answers for GNU's symbols too, which oneDNN was
    # built against, and the process has one team of threads rather than two.
    find_package(OpenMP REQUIRED COMPONENTS CXX)
    target_link_libraries(yoke_engines INTERFACE OpenMP::OpenMP_CXX)
endif()
target_link_libraries(yoke_engines INTERFACE
    DNNL::dnnl ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
