# yoke_engines: base libraries of libyoke. oneDNN and zlib are optional on request: with AUTO the configuration prints
# missing libraries and their cost, with ON (the default) a missing library is an error.
set(YOKE_ONEDNN ON CACHE STRING "Matrix products of the CPU by oneDNN 2: ON, AUTO (where it is found) or OFF")
set(YOKE_ZLIB ON CACHE STRING "Reading of gzip files by zlib: ON, AUTO (where it is found) or OFF")
find_package(Threads REQUIRED)

# yoke_engine(NAME found cost): whether an engine is used, in NAME_USED: TRUE or FALSE. `problem` says why it was not
# found.
function(yoke_engine name found cost)
    if(NOT problem)
        set(problem "the library was not found: install it (Debian: libdnnl-dev, zlib1g-dev)")
    endif()
    set(use ${found})
    if(${name} STREQUAL "OFF")
        set(use FALSE)
    elseif(NOT use AND NOT ${name} STREQUAL "AUTO")
        message(FATAL_ERROR "${name} is ON, yet ${problem}, or configure with ${name}=OFF: ${cost}.")
    endif()
    if(NOT use)
        message(STATUS "building without ${name}: ${cost}")
    endif()
    set(${name}_USED ${use} PARENT_SCOPE)
endfunction()

if(NOT YOKE_ZLIB STREQUAL "OFF")
    find_package(ZLIB)
endif()
yoke_engine(YOKE_ZLIB "${ZLIB_FOUND}" "read_idx reads uncompressed files alone")

# Found by name, because Debian's CMake package of oneDNN also asks for OpenCL's headers, and Yoke does not need
# these.
find_path(YOKE_DNNL_INCLUDE oneapi/dnnl/dnnl.h)
find_library(YOKE_DNNL_LIBRARY NAMES dnnl)
set(found FALSE)
if(YOKE_DNNL_INCLUDE AND YOKE_DNNL_LIBRARY)
    file(STRINGS ${YOKE_DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h major REGEX "define DNNL_VERSION_MAJOR")
    string(REGEX MATCH "[0-9]+$" major "${major}")
    if(major EQUAL 2)
        set(found TRUE)
    else()
        set(problem "${YOKE_DNNL_LIBRARY} is oneDNN ${major}, whose C interface is another: install oneDNN 2")
    endif()
endif()
yoke_engine(YOKE_ONEDNN ${found} "matrix products on the CPU take Yoke's own loops, which are slower")

add_library(yoke_engines INTERFACE)
if(YOKE_ONEDNN_USED)
    add_library(DNNL::dnnl UNKNOWN IMPORTED)
    set_target_properties(DNNL::dnnl PROPERTIES
        IMPORTED_LOCATION ${YOKE_DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${YOKE_DNNL_INCLUDE})
    target_link_libraries(yoke_engines INTERFACE DNNL::dnnl)
endif()
if(YOKE_ZLIB_USED)
    target_link_libraries(yoke_engines INTERFACE ZLIB::ZLIB)
endif()
target_link_libraries(yoke_engines INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
