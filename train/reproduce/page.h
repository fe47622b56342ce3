// A table as pages: for people, for a spreadsheet, for programs.
#pragma once

#include <string>

#include "core/config/value.h"
#include "train/reproduce/table_view.h"

namespace tessera {

// `command` is what makes the table; `picture` the file beside it that is shown.
std::string to_markdown(const TableView& view, const std::string& command, const std::string& picture);
std::string to_csv(const TableView& view);  // a line per arm and batch; metrics in per cent are fractions
Value to_value(const TableView& view, const std::string& command);

// "Is ADMM worth its epochs? Yes: admm is 1.20 points above direct (95 % interval 0.31 to 2.09, 3 seeds)."
std::string answer_text(const QuestionAnswer& answer);

}  // namespace tessera
