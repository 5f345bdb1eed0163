# Content of an install prefix besides the bindings: libyoke, its headers, and the files for CMake
# (`find_package(yoke)`) and pkg-config.
if(DEFINED SKBUILD)
    # A wheel has no symbolic links, so it carries only the name requested by the loader.
    set_target_properties(yoke PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
    install(TARGETS yoke LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
    return()
endif()

install(TARGETS yoke EXPORT yoke LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/capi/include/yoke DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN *.h)

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/yoke)
install(EXPORT yoke FILE yokeConfig.cmake NAMESPACE yoke:: DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/yokeConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/yokeConfigVersion.cmake DESTINATION ${package_dir})

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH YOKE_PC_TO_PREFIX /prefix/${pc_dir} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/yoke.pc.in ${PROJECT_BINARY_DIR}/yoke.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/yoke.pc DESTINATION ${pc_dir})
