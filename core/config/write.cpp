#include "core/config/read.h"
#include "core/support/error.h"

namespace tessera::detail {
namespace {

class WriteFields final : public Fields {
 public:
  WriteFields() { open("", Value::map()); }
  Value take() { return std::move(open_.front().value); }

  void add(std::string_view key, bool& value, const FieldSpec&) override { put(key, value); }
  void add(std::string_view key, std::int64_t& value, const FieldSpec&) override { put(key, value); }
  void add(std::string_view key, double& value, const FieldSpec&) override { put(key, value); }
  void add(std::string_view key, std::string& value, const FieldSpec&) override { put(key, Value(value).with_quotes()); }
  void add(std::string_view key, Duration& value, const FieldSpec&) override { put(key, to_string(value)); }
  void add(std::string_view key, Extent& value, const FieldSpec&) override {
    put(key, value.h == value.w ? Value(value.h) : Value::list({value.h, value.w}));
  }
  void add(std::string_view key, std::vector<std::int64_t>& value, const FieldSpec&) override { put_list(key, value); }
  void add(std::string_view key, std::vector<double>& value, const FieldSpec&) override { put_list(key, value); }
  void add(std::string_view key, std::vector<std::string>& value, const FieldSpec&) override { put_list(key, value); }
  void add(std::string_view key, Value& value, const FieldSpec&) override { put(key, value); }
  void require(bool, std::string_view, std::string_view) override {}

 protected:
  Purpose purpose() const override { return Purpose::write; }
  bool enter(std::string_view key, const FieldSpec&) override {
    open(key, Value::map());
    return true;
  }
  std::optional<std::size_t> enter_list(std::string_view key, std::size_t size, const FieldSpec&) override {
    open(key, Value::list());
    return size;
  }
  bool enter_item(std::size_t) override {
    open("", Value::map());
    return true;
  }
  void enter_alternative(std::string_view) override { throw InternalError("config: alternatives are entered to describe only"); }
  void leave() override {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (open_.back().value.is_list()) {
      open_.back().value.as_list().push_back(std::move(done.value));
    } else {
      put(done.key, std::move(done.value));
    }
  }
  bool present(std::string_view, bool has_value) override { return has_value; }
  bool is_null(std::string_view key, bool has_value) override {
    if (!has_value) put(key, Value());
    return !has_value;
  }
  bool is_list(std::string_view, bool has_items) override { return has_items; }
  bool add_name(std::string_view key, std::string& name, const FieldSpec&, std::span<const Form>) override {
    put(key, name);
    return true;
  }

 private:
  struct Open {
    std::string key;
    Value value;
  };

  void open(std::string_view key, Value value) { open_.push_back({std::string(key), std::move(value)}); }
  void put(std::string_view key, Value value) { open_.back().value.set(key, std::move(value)); }
  template <class T>
  void put_list(std::string_view key, const std::vector<T>& items) {
    put(key, Value::list({items.begin(), items.end()}));
  }

  std::vector<Open> open_;
};

}  // namespace

Value write_block(void* block, Visit visit) {
  WriteFields fields;
  visit(block, fields);
  return fields.take();
}

}  // namespace tessera::detail
