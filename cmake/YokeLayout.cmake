# Where things lie. The build tree mirrors an install prefix: lib/ for libyoke and its backend
# modules, python/ and lua/ for what scripts import, each found from the other by relative RPATH.
set(YOKE_BUILD_LIB ${PROJECT_BINARY_DIR}/lib)
set(YOKE_BUILD_PYTHON ${PROJECT_BINARY_DIR}/python)
set(YOKE_BUILD_LUA ${PROJECT_BINARY_DIR}/lua)

# `env CMD…` runs CMD with the build tree's package, modules and libraries on its paths.
configure_file(${PROJECT_SOURCE_DIR}/cmake/env.in ${PROJECT_BINARY_DIR}/env @ONLY
               FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                WORLD_READ WORLD_EXECUTE)

# Scripts are linked into the build tree, not copied: an edit takes effect at once. They are
# installed as they lie.
function(yoke_add_scripts from build_folder install_folder)
    file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE ${from}
         ${from}/*.py ${from}/*.pyi ${from}/py.typed ${from}/*.lua)
    foreach(script IN LISTS scripts)
        cmake_path(GET script PARENT_PATH folder)
        file(MAKE_DIRECTORY ${build_folder}/${folder})
        file(CREATE_LINK ${from}/${script} ${build_folder}/${script} SYMBOLIC)
        install(FILES ${from}/${script} DESTINATION ${install_folder}/${folder})
    endforeach()
endfunction()

# Installs a module that needs libyoke, with an RPATH that holds wherever the prefix is moved.
function(yoke_install_module target folder)
    file(RELATIVE_PATH to_lib /prefix/${folder} /prefix/${CMAKE_INSTALL_LIBDIR})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
    install(TARGETS ${target} LIBRARY DESTINATION ${folder})
endfunction()
