# `make install` and the Debian package: the program, its recipes, the completions of three shells and the
# manual page. The program finds its recipes beside itself (../share/weft/recipes), so the tree may be moved.
include(GNUInstallDirs)

install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(PROGRAMS tools/mpirun.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(FILES docs/weft.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The program itself writes the completions, from its commands and keys.
set(weft_completions ${CMAKE_BINARY_DIR}/completions)
add_custom_command(
  OUTPUT ${weft_completions}/weft ${weft_completions}/_weft ${weft_completions}/weft.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${weft_completions}
  COMMAND weft completion bash > ${weft_completions}/weft
  COMMAND weft completion zsh > ${weft_completions}/_weft
  COMMAND weft completion fish > ${weft_completions}/weft.fish
  DEPENDS weft)
add_custom_target(completions DEPENDS ${weft_completions}/weft)
install(FILES ${weft_completions}/weft
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
install(FILES ${weft_completions}/_weft
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions OPTIONAL)
install(FILES ${weft_completions}/weft.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d OPTIONAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME weft)
set(CPACK_PACKAGE_CONTACT "The engineers of Weft")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains mixture-of-experts language models and hides their communication")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# What the program links, where dpkg's own tool is there to ask; else by name.
find_program(WEFT_SHLIBDEPS dpkg-shlibdeps)
if(WEFT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-pthread, libyaml-cpp0.7 | libyaml-cpp0.8, libfmt9, libspdlog1.10 | libspdlog1.12")
endif()
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
include(CPack)
