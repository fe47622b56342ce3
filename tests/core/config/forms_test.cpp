// Config blocks whose keys depend on a name. A form may have several names, and all forms share some keys.
#include "core/config/forms.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Value json(std::string_view text) { return parse_json(text, "test"); }

struct Circle {
  static constexpr const char* kName = "circle";
  double radius = 1;
  void fields(Fields& f) { f.add("radius", radius, {.help = "", .range = positive}); }
};

struct Box {
  static constexpr std::array<std::string_view, 2> kNames{"square", "cube"};
  std::string name = "square";
  std::int64_t side = 2;
  void fields(Fields& f) { f.add("side", side, {.help = "", .range = at_least(1)}); }
};

struct Figure {
  std::variant<Circle, Box> form;
  std::string colour = "red";
  void fields(Fields& f) {
    f.choose("name", form, {}, [this](Fields& inner) { inner.add("colour", colour, {}); });
  }
};

std::string refusal(const char* text) {
  return message_of<ConfigError>([&] { read<Figure>(json(text), "figure"); });
}

TEST(Forms, AFormKeepsTheNameThatItGoesBy) {
  const auto cube = read<Figure>(json(R"({"name": "cube", "side": 3})"));
  EXPECT_EQ(form_name(cube.form), "cube");
  EXPECT_EQ(std::get<Box>(cube.form).side, 3);
  EXPECT_EQ(form_name(read<Figure>(json(R"({"name": "circle"})")).form), "circle");
  EXPECT_EQ(form_name(read<Figure>(json("{}")).form), "circle") << "the first form is the default";
  EXPECT_EQ(all_form_names(cube.form), (std::vector<std::string_view>{"circle", "square", "cube"}));
}

TEST(Forms, AnotherNameOfTheSameFormKeepsItsKeys) {
  std::variant<Circle, Box> form = Box{.name = "square", .side = 5};
  EXPECT_TRUE(set_form(form, "cube"));
  EXPECT_EQ(form_name(form), "cube");
  EXPECT_EQ(std::get<Box>(form).side, 5);
  EXPECT_FALSE(set_form(form, "line"));
  EXPECT_EQ(form_name(form), "cube");
  EXPECT_TRUE(set_form(form, "circle"));
  EXPECT_EQ(form_name(form), "circle");
}

TEST(Forms, SharedKeysStandBetweenTheNameAndItsOwn) {
  const auto cube = read<Figure>(json(R"({"side": 3, "colour": "blue", "name": "cube"})"));
  EXPECT_EQ(to_json(write(cube)), R"({"name":"cube","colour":"blue","side":3})");
  EXPECT_EQ(to_json(write(Figure())), R"({"name":"circle","colour":"red","radius":1.0})");
}

TEST(Forms, AKeyOfAnotherFormSaysWhoseItIs) {
  EXPECT_EQ(refusal(R"({"name": "circle", "side": 3})"), "test: figure.side: belongs to name: square, cube");
  EXPECT_EQ(refusal(R"({"name": "cube", "radius": 3})"), "test: figure.radius: belongs to name: circle");
  EXPECT_EQ(refusal(R"({"name": "cube", "sidee": 3})"), "test: figure.sidee: unknown key; did you mean 'side'?");
}

TEST(Forms, WhereTheNameIsWrongOnlySharedKeysAreJudged) {
  EXPECT_EQ(refusal(R"({"name": "cub", "radius": 3, "colour": 1})"),
            "test: figure.name: 'cub' is not a choice; did you mean 'cube'?; choices: circle square cube\n"
            "test: figure.colour: expected text, found 1; write it in quotes");
  EXPECT_EQ(refusal(R"({"namee": "cube", "side": 3})"), "test: figure.namee: unknown key; did you mean 'name'?");
}

TEST(Forms, ASchemaHasSharedKeysOnceAndOthersByTheFirstName) {
  std::vector<std::string> paths;
  for (const SchemaEntry& entry : schema<Figure>()) paths.push_back(entry.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"name", "colour", "(circle).radius", "(square).side"}));
}

}  // namespace
}  // namespace tessera
