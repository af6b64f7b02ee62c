#include "workloads/mosaic/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/status_macros.h"
#include "workloads/mosaic/bytecode.h"
#include "workloads/mosaic/cursor.h"

namespace tpusim::mosaic {
namespace {

// Regions or attributes in one another; more is no kernel.
constexpr int kDeepestText = 100;  // number: more is no kernel

// The comparisons of integers, in the order in which bytecode numbers them.
constexpr std::string_view kPredicates[] = {
    "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

bool Take(std::string_view prefix, std::string_view* text) {
  if (!text->starts_with(prefix)) return false;
  *text = Trimmed(text->substr(prefix.size()));
  return true;
}

// Visits the position of every character outside of brackets and quotes, until a visit is false.
template <typename Visit>
void ForOuter(std::string_view text, const Visit& visit) {
  int depth = 0;
  bool quoted = false;
  for (size_t n = 0; n < text.size(); ++n) {
    const char c = text[n];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    const bool arrow = c == '>' && n > 0 && text[n - 1] == '-';
    if ((c == ')' || c == ']' || c == '}' || c == '>') && !arrow) --depth;
    if (depth == 0 && !visit(n)) return;
    if (c == '(' || c == '[' || c == '{' || c == '<') ++depth;
  }
}

// Returns where `what` is first found outside of brackets; npos: nowhere.
size_t FindOuter(std::string_view text, std::string_view what) {
  size_t found = std::string_view::npos;
  ForOuter(text, [&](size_t n) {
    if (text.substr(n, what.size()) == what) found = n;
    return found == std::string_view::npos;
  });
  return found;
}

// Returns the parts between commas; none of an empty text.
std::vector<std::string_view> Listed(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  ForOuter(text, [&](size_t n) {
    if (text[n] != ',') return true;
    parts.push_back(Trimmed(text.substr(begin, n - begin)));
    begin = n + 1;
    return true;
  });
  const std::string_view last = Trimmed(text.substr(begin));
  if (!last.empty() || !parts.empty()) parts.push_back(last);
  return parts;
}

// Returns what is inside of the brackets around a text; empty: there are none.
std::string_view Inside(std::string_view text) {
  text = Trimmed(text);
  return text.size() < 2 ? std::string_view() : Trimmed(text.substr(1, text.size() - 2));
}

std::optional<int64_t> IntegerOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns the integer that a constant is, or bits that tell one number from another.
int64_t BitsOfText(std::string_view number) {
  if (number == "true") return 1;
  if (number == "false") return 0;
  if (const std::optional<int64_t> integer = IntegerOf(number)) return *integer;
  return std::bit_cast<int64_t>(std::strtod(std::string(number).c_str(), nullptr));
}

class TextReader {
 public:
  TextReader(std::string_view text, Module* module) : left_(text), module_(module) {}

  void Read() {
    std::string_view line = NextLine();
    if (!line.starts_with("module") || !line.ends_with("{")) return Fail();
    ReadBlock(&module_->top);
  }
  const Damage& damage() const { return damage_; }

 private:
  using Names = std::map<std::string, const Value*, std::less<>>;

  void Fail() { damage_.Set(fmt::format("line {} is not understood: {}", number_, line_)); }
  bool ok() const { return damage_.what.empty(); }

  std::string_view NextLine() {
    while (!left_.empty()) {
      const size_t end = std::min(left_.find('\n'), left_.size());
      line_ = Trimmed(left_.substr(0, end));
      left_.remove_prefix(std::min(end + 1, left_.size()));
      ++number_;
      if (!line_.empty()) return line_;
    }
    return line_ = {};
  }

  // Reads up to the brace that closes the block, and returns the line with it.
  std::string_view ReadBlock(Block* block) {
    if (++depth_ > kDeepestText) Fail();
    const Names outer = names_;
    std::string_view line;
    while (ok()) {
      line = NextLine();
      if (line.empty()) Fail();
      if (line.empty() || line.starts_with("}")) break;
      block->operations.push_back(ReadOperation(line));
    }
    names_ = outer;
    --depth_;
    return line;
  }

  const Operation* ReadOperation(std::string_view line) {
    Operation& operation = module_->operations.emplace_back();
    Attribute& attributes = module_->attributes.emplace_back();
    attributes.kind = Attribute::Kind::kDictionary;
    operation.attributes = &attributes;
    std::vector<std::string_view> results;
    if (line.starts_with("%")) {
      const size_t equals = line.find(" = ");
      if (equals == std::string_view::npos) {
        Fail();
        return &operation;
      }
      results = Listed(line.substr(0, equals));
      line = Trimmed(line.substr(equals + 3));  // number: letters
    }
    const size_t end = std::min(line.find_first_of(" \t("), line.size());
    operation.name = line.substr(0, end);
    std::string_view rest = Trimmed(line.substr(end));
    if (operation.name == "return") operation.name = "func.return";
    if (operation.name == "func.func") {
      ReadFunction(rest, &operation, &attributes);
    } else if (operation.name == "scf.for") {
      ReadFor(rest, &operation);
    } else {
      ReadPlain(rest, &operation, &attributes);
    }
    NameResults(results, &operation);
    return &operation;
  }

  // @NAME(%arg0: TYPE, ...) [-> TYPES] [attributes {...}] {
  void ReadFunction(std::string_view rest, Operation* function, Attribute* attributes) {
    Take("private", &rest);
    const size_t open = FindOuter(rest, "("), close = FindOuter(rest, ")");
    if (!rest.starts_with("@") || close == std::string_view::npos || !rest.ends_with("{")) {
      return Fail();
    }
    Attribute& name = module_->attributes.emplace_back();
    name.kind = Attribute::Kind::kString;
    name.text = rest.substr(1, open - 1);
    attributes->entries.emplace_back("sym_name", &name);
    const std::string_view after = rest.substr(close + 1);
    if (const size_t at = after.find("attributes {"); at != std::string_view::npos) {
      std::string_view dictionary = after.substr(at + std::string_view("attributes ").size());
      AddEntries(Trimmed(dictionary.substr(0, dictionary.size() - 1)), attributes);
    }
    const Names outer = std::exchange(names_, {});
    Block& block = AddRegion(function);
    for (const std::string_view argument : Listed(rest.substr(open + 1, close - open - 1))) {
      const size_t colon = argument.find(':');
      if (colon == std::string_view::npos) return Fail();
      AddArgument(Trimmed(argument.substr(0, colon)), TypeOf(argument.substr(colon + 1)), &block);
    }
    ReadBlock(&block);
    names_ = outer;
  }

  // %i = %first to %last step %step [iter_args(%a = %b, ...) -> (TYPES)] [: TYPE] {
  void ReadFor(std::string_view rest, Operation* loop) {
    if (!rest.ends_with("{")) return Fail();
    rest = Trimmed(rest.substr(0, rest.size() - 1));
    const Type* counted = TypeOf("index");
    if (const size_t colon = FindOuter(rest, ": "); colon != std::string_view::npos) {
      counted = TypeOf(rest.substr(colon + 1));
      rest = Trimmed(rest.substr(0, colon));
    }
    std::vector<std::string_view> carried, types;
    if (const size_t at = rest.find("iter_args("); at != std::string_view::npos) {
      const size_t arrow = FindOuter(rest, "->");
      if (arrow == std::string_view::npos || arrow < at) return Fail();
      carried = Listed(Inside(rest.substr(at, arrow - at).substr(
          std::string_view("iter_args").size())));
      types = Listed(Inside(rest.substr(arrow + 2)));
      rest = Trimmed(rest.substr(0, at));
    }
    const size_t equals = rest.find(" = ");
    if (equals == std::string_view::npos || carried.size() != types.size()) return Fail();
    AddOperands(rest.substr(equals), loop);
    std::vector<std::pair<std::string_view, const Type*>> arguments = {
        {Trimmed(rest.substr(0, equals)), counted}};
    for (size_t n = 0; n < carried.size(); ++n) {
      const size_t is = carried[n].find(" = ");
      if (is == std::string_view::npos) return Fail();
      AddOperands(carried[n].substr(is), loop);
      arguments.emplace_back(Trimmed(carried[n].substr(0, is)), TypeOf(types[n]));
      AddResult(TypeOf(types[n]), loop);
    }
    const Names outer = names_;
    Block& block = AddRegion(loop);
    for (const auto& [name, type] : arguments) AddArgument(name, type, &block);
    ReadBlock(&block);
    names_ = outer;
  }

  // [WORDS] OPERANDS [{ATTRIBUTES}] [: TYPES] [-> TYPES] [{]
  void ReadPlain(std::string_view rest, Operation* operation, Attribute* attributes) {
    const bool opens = operation->name == "scf.if" || operation->name == "scf.execute_region";
    if (opens) {
      if (!rest.ends_with("{")) return Fail();
      rest = Trimmed(rest.substr(0, rest.size() - 1));
    }
    std::string_view types;
    if (const size_t arrow = FindOuter(rest, " -> "); opens && arrow != std::string_view::npos) {
      types = rest.substr(arrow);
      rest = Trimmed(rest.substr(0, arrow));
    } else if (const size_t colon = FindOuter(rest, " : "); colon != std::string_view::npos) {
      types = Trimmed(rest.substr(colon + 3));  // number: letters
      rest = Trimmed(rest.substr(0, colon));
    }
    if (const size_t open = FindOuter(rest, "{"); open != std::string_view::npos) {
      const size_t close = FindOuter(rest, "}");
      if (close == std::string_view::npos) return Fail();
      AddEntries(rest.substr(open, close + 1 - open), attributes);
      rest = Trimmed(rest.substr(0, open));
    }
    AddOperands(rest, operation);
    AddWords(rest, types, operation, attributes);
    AddResults(types, operation);
    if (!opens) return;
    std::string_view closing;
    do {
      closing = ReadBlock(&AddRegion(operation));
    } while (ok() && closing == "} else {");
  }

  // Adds the attributes that stand before or behind the operands of some operations.
  void AddWords(std::string_view rest, std::string_view types, Operation* operation,
                Attribute* attributes) {
    const std::string& name = operation->name;
    Attribute word;
    word.kind = Attribute::Kind::kInteger;
    if (name == "arith.cmpi") {
      const auto at = std::ranges::find(kPredicates, rest.substr(0, rest.find_first_of(" ,")));
      if (at == std::end(kPredicates)) return Fail();
      word.integer = at - std::begin(kPredicates);
      return Add("predicate", std::move(word), attributes);
    }
    if (name == "arith.constant") {
      if (Take("dense<", &rest)) {
        word.kind = Attribute::Kind::kElements;
        // A list has several; a number is that of all elements.
        if (!rest.starts_with("[")) {
          word.integers = {BitsOfText(rest.substr(0, rest.find('>')))};
        }
      } else {
        word.integer = BitsOfText(rest);
        if (!types.empty() && TypeOf(types)->kind == Type::Kind::kFloat) {
          word.kind = Attribute::Kind::kFloat;
        }
      }
      return Add("value", std::move(word), attributes);
    }
    if (name == "vector.multi_reduction") {
      const size_t open = rest.rfind('[');
      if (open == std::string_view::npos) return Fail();
      word.kind = Attribute::Kind::kIntegers;
      for (const std::string_view number : Listed(Inside(rest.substr(open)))) {
        word.integers.push_back(IntegerOf(number).value_or(0));
      }
      Add("reduction_dims", std::move(word), attributes);
    }
  }

  void AddResults(std::string_view types, Operation* operation) {
    const std::string& name = operation->name;
    const bool nothing = name.ends_with("store") || name.ends_with("yield") ||
                         name.ends_with("return") || name.ends_with("condition");
    if (nothing) return;
    for (const std::string_view arrow : {"-> ", " to "}) {
      const size_t at = FindOuter(types, arrow);
      if (at == std::string_view::npos) continue;
      std::string_view to = Trimmed(types.substr(at + arrow.size()));
      if (to.starts_with("(")) to = Inside(to);
      for (const std::string_view type : Listed(to)) AddResult(TypeOf(type), operation);
      return;
    }
    if (name == "scf.if" || name == "scf.execute_region") return;
    if (types.empty()) {
      if (name == "arith.constant") AddResult(TypeOf("i1"), operation);  // true or false
      return;
    }
    const Type* last = TypeOf(Listed(types).back());
    if (name.starts_with("arith.cmp")) {
      Type bits = *TypeOf("i1");
      if (last->element != nullptr) bits = {last->kind, "", TypeOf("i1"), last->shape};
      last = &module_->types.emplace_back(std::move(bits));
    } else if (name == "memref.load" && last->element != nullptr) {
      last = last->element;
    }
    AddResult(last, operation);
  }

  // {NAME = VALUE, ...}
  void AddEntries(std::string_view dictionary, Attribute* to) {
    for (const std::string_view entry : Listed(Inside(dictionary))) {
      const size_t equals = FindOuter(entry, " = ");
      Attribute unit;
      unit.kind = Attribute::Kind::kUnit;
      if (equals == std::string_view::npos) {
        Add(entry, std::move(unit), to);
      } else {
        to->entries.emplace_back(
            Trimmed(entry.substr(0, equals)),
            AttributeOf(Trimmed(entry.substr(equals + 3))));  // number: letters
      }
    }
  }

  void Add(std::string_view name, Attribute value, Attribute* to) {
    to->entries.emplace_back(name, &module_->attributes.emplace_back(std::move(value)));
  }

  const Attribute* AttributeOf(std::string_view text) {
    Attribute& value = module_->attributes.emplace_back();
    if (++attribute_depth_ > kDeepestText) Fail();
    if (!ok()) return &value;
    if (text.starts_with("{")) {
      value.kind = Attribute::Kind::kDictionary;
      AddEntries(text, &value);
    } else if (text.starts_with("[")) {
      value.kind = Attribute::Kind::kArray;
      for (const std::string_view each : Listed(Inside(text))) {
        value.elements.push_back(AttributeOf(each));
      }
    } else if (text.starts_with("array<")) {
      value.kind = Attribute::Kind::kIntegers;
      const size_t colon = text.find(':');
      const size_t begin = colon == std::string_view::npos ? text.size() - 1 : colon + 1;
      for (const std::string_view each : Listed(text.substr(begin, text.size() - 1 - begin))) {
        const std::optional<int64_t> number = IntegerOf(each);
        if (!number) Fail();
        value.integers.push_back(number.value_or(0));
      }
    } else if (text.starts_with("@")) {
      value.kind = Attribute::Kind::kSymbol;
      value.text = text.substr(1);
    } else if (text.starts_with("\"")) {
      value.kind = Attribute::Kind::kString;
      value.text = Inside(text);
    } else if (text.starts_with("#")) {
      value.text = text;
    } else {
      value.kind = Attribute::Kind::kInteger;
      value.integer = BitsOfText(Trimmed(text.substr(0, text.find(" : "))));
    }
    --attribute_depth_;
    return &value;
  }

  // "memref<1x1024xbf16, #tpu.memory_space<vmem>>", "vector<8x128xf32>", "i32"
  const Type* TypeOf(std::string_view text) {
    text = Trimmed(text);
    Type type;
    const bool reference = text.starts_with("memref<");
    if (reference || text.starts_with("vector<")) {
      type.kind = reference ? Type::Kind::kMemRef : Type::Kind::kVector;
      const std::string_view inside = Inside(text.substr(text.find('<')));
      const std::vector<std::string_view> parts = Listed(inside);
      if (parts.empty()) Fail();
      std::string_view shape = parts.empty() ? std::string_view() : parts[0];
      for (size_t x = shape.find('x'); !shape.empty() && (IsDigit(shape[0]) || shape[0] == '?');
           x = shape.find('x')) {
        if (x == std::string_view::npos) break;
        const std::string_view extent = shape.substr(0, x);
        type.shape.push_back(extent == "?" ? kDynamic : IntegerOf(extent).value_or(0));
        shape.remove_prefix(x + 1);
      }
      type.element = TypeOf(shape);
      constexpr std::string_view kSpace = "memory_space<";
      if (const size_t at = inside.find(kSpace); at != std::string_view::npos) {
        const std::string_view space = inside.substr(at + kSpace.size());
        type.memory_space = space.substr(0, space.find('>'));
      }
    } else if (text == "index") {
      type = {Type::Kind::kIndex, "index"};
    } else {
      const bool number = text.size() > 1 && IsDigit(text.back());
      const bool integer = number && text[0] == 'i';
      const bool real = text.starts_with("bf") || (text.size() > 1 && text[0] == 'f');
      type.kind = integer ? Type::Kind::kInteger : real ? Type::Kind::kFloat : Type::Kind::kOther;
      type.name = text;
    }
    return &module_->types.emplace_back(std::move(type));
  }

  Block& AddRegion(Operation* operation) {
    return operation->regions.emplace_back().blocks.emplace_back();
  }

  void AddArgument(std::string_view name, const Type* type, Block* block) {
    block->arguments.push_back(&module_->values.emplace_back(Value{type}));
    names_.insert_or_assign(std::string(name), block->arguments.back());
  }

  void AddResult(const Type* type, Operation* operation) {
    operation->results.push_back(&module_->values.emplace_back(Value{type, operation}));
  }

  // Adds the value of each name that begins with %.
  void AddOperands(std::string_view text, Operation* operation) {
    for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
      const size_t end = std::min(text.find_first_of(" ,[)]}:", at), text.size());
      std::string name(text.substr(at, end - at));
      if (name.ends_with("#0")) name.resize(name.size() - 2);
      const auto found = names_.find(name);
      if (found == names_.end()) return Fail();
      operation->operands.push_back(found->second);
    }
  }

  // Names the results: "%5", or "%5:2" for two that are used as %5#0 and %5#1.
  void NameResults(const std::vector<std::string_view>& names, Operation* operation) {
    std::vector<std::string> all;
    for (const std::string_view name : names) {
      const size_t colon = name.find(':');
      const int64_t count =
          colon == std::string_view::npos ? 1 : IntegerOf(name.substr(colon + 1)).value_or(0);
      const std::string first(name.substr(0, colon));
      if (count < 1 || count > std::ssize(operation->results)) return Fail();
      for (int64_t n = 0; n < count; ++n) {
        all.push_back(n == 0 ? first : fmt::format("{}#{}", first, n));
      }
    }
    if (all.size() != operation->results.size()) return Fail();
    for (size_t n = 0; n < all.size(); ++n) {
      names_.insert_or_assign(std::move(all[n]), operation->results[n]);
    }
  }

  std::string_view left_, line_;
  Module* module_;
  Damage damage_;
  Names names_;
  int64_t number_ = 0;
  int depth_ = 0, attribute_depth_ = 0;
};

}  // namespace

bool IsAssembly(std::string_view body) { return body.starts_with("module"); }

absl::StatusOr<std::unique_ptr<Module>> ReadBody(std::string_view body) {
  if (!IsAssembly(body)) return ReadBytecode(body);
  auto module = std::make_unique<Module>();
  TextReader reader(body, module.get());
  reader.Read();
  if (!reader.damage().what.empty()) {
    return UserError(
        fmt::format("the text of the kernel cannot be read: {}", reader.damage().what));
  }
  return module;
}

}  // namespace tpusim::mosaic
