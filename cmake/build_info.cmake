# Writes build_info.h with the commit of the moment; configure_file leaves the file alone when its content stays the same. What
# scripts/bench and tessera reproduce write, results and the pages with their tables, leaves the commit clean: no program is built from it.
set(TESSERA_COMMIT "")
if(GIT)
  execute_process(COMMAND ${GIT} describe --always WORKING_DIRECTORY ${SOURCE_DIR}
                  OUTPUT_VARIABLE TESSERA_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(TESSERA_COMMIT)
  execute_process(COMMAND ${GIT} diff --quiet HEAD -- . ":!bench/results" ":!configs/tables/results" ":!README.md" ":!docs/benchmarks.md"
                          ":!docs/results.md"
                  WORKING_DIRECTORY ${SOURCE_DIR} RESULT_VARIABLE changed)
  if(changed)
    string(APPEND TESSERA_COMMIT -dirty)
  endif()
else()
  set(TESSERA_COMMIT unknown)
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
