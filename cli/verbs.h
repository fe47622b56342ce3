// One function per verb: adds it to the program with its help, its example and what it runs.
#pragma once

#include "cli/verb.h"

namespace tessera::cli {

void add_train(Verb program);
void add_resume(Verb program);
void add_fork(Verb program);
void add_status(Verb program);
void add_eval(Verb program);
void add_sensitivity(Verb program);
void add_diff(Verb program);
void add_plan(Verb program);
void add_layers(Verb program);
void add_table(Verb program);
void add_report(Verb program);
void add_reproduce(Verb program);
void add_bench(Verb program);
void add_compress(Verb program);
void add_validate(Verb program);
void add_schema(Verb program);
void add_export(Verb program);
void add_generate(Verb program);
void add_predict(Verb program);
void add_init(Verb program);
void add_data(Verb program);

}  // namespace tessera::cli
