// SPDX-License-Identifier: Apache-2.0
#include "edge/ptx.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

#include "edge/ptx_cost.h"
#include "simt/analysis.h"

namespace warpcache::edge_sim {
namespace {

constexpr uint32_t kRegistersMax = 1u << 16;
constexpr uint32_t kSharedMax = 228 * 1024;
constexpr uint32_t kDefaultRegisters = 32;

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  size_t at = 0;
  while ((at = text.find_first_not_of(separators, at)) != std::string::npos) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

uint32_t number_in(const char* text) {
  return static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

std::optional<Type> type_of(const std::string& name) {
  if (name == "pred") return Type{1, false, false};
  if (name.size() < 2 || std::strchr("busf", name[0]) == nullptr) return std::nullopt;
  const std::string bits = name.substr(1);
  if (bits != "8" && bits != "16" && bits != "32" && bits != "64") return std::nullopt;
  return Type{static_cast<uint8_t>(std::stoi(bits)), name[0] == 's', name[0] == 'f'};
}

const std::map<std::string, Op> kOps = {
    {"mov", Op::kMov},        {"cvta", Op::kMov},  {"add", Op::kAdd},      {"sub", Op::kSub},
    {"mul", Op::kMul},        {"mad", Op::kMad},   {"fma", Op::kMad},      {"div", Op::kDiv},
    {"rem", Op::kRem},        {"min", Op::kMin},   {"max", Op::kMax},      {"and", Op::kAnd},
    {"or", Op::kOr},          {"xor", Op::kXor},   {"not", Op::kNot},      {"neg", Op::kNeg},
    {"abs", Op::kAbs},        {"shl", Op::kShl},   {"shr", Op::kShr},      {"shf", Op::kShf},
    {"bfi", Op::kBfi},        {"prmt", Op::kPrmt}, {"clz", Op::kClz},      {"brev", Op::kBrev},
    {"bfind", Op::kBfind},    {"setp", Op::kSetp}, {"selp", Op::kSelp},    {"cvt", Op::kCvt},
    {"sqrt", Op::kSqrt},      {"rcp", Op::kRcp},   {"ld", Op::kLoad},      {"st", Op::kStore},
    {"atom", Op::kAtom},      {"bar", Op::kBar},   {"membar", Op::kFence}, {"fence", Op::kFence},
    {"bra", Op::kBra},        {"ret", Op::kRet},   {"exit", Op::kRet},     {"trap", Op::kTrap},
    {"nanosleep", Op::kSleep}};

const std::map<std::string, Compare> kCompares = {
    {"eq", Compare::kEq}, {"ne", Compare::kNe}, {"lt", Compare::kLt}, {"le", Compare::kLe},
    {"gt", Compare::kGt}, {"ge", Compare::kGe}, {"lo", Compare::kLt}, {"ls", Compare::kLe},
    {"hi", Compare::kGt}, {"hs", Compare::kGe}, {"neu", Compare::kNe}};

const std::map<std::string, Atom> kAtoms = {
    {"add", Atom::kAdd}, {"exch", Atom::kExchange}, {"cas", Atom::kCompareSwap}, {"or", Atom::kOr},
    {"and", Atom::kAnd}, {"min", Atom::kMin},       {"max", Atom::kMax}};

const std::map<std::string, Special> kSpecials = {
    {"%tid.x", Special::kTidX},       {"%tid.y", Special::kTidY},
    {"%ntid.x", Special::kNtidX},     {"%ntid.y", Special::kNtidY},
    {"%ctaid.x", Special::kCtaidX},   {"%ctaid.y", Special::kCtaidY},
    {"%nctaid.x", Special::kNctaidX}, {"%nctaid.y", Special::kNctaidY},
    {"%laneid", Special::kLane}};

// Modifiers that change nothing here: rounding, scopes, caches.
bool is_ignored(const std::string& modifier) {
  static const char* const kIgnored[] = {
      "rn",   "rz",      "rm",      "rp",   "rni",    "rzi",     "rmi", "rpi", "approx",     "full",
      "ftz",  "sat",     "uni",     "to",   "global", "gpu",     "sys", "cta", "nc",         "wrap",
      "sync", "aligned", "relaxed", "weak", "sc",     "acq_rel", "gl",  "L1",  "evict_first"};
  return std::any_of(std::begin(kIgnored), std::end(kIgnored),
                     [&](const char* word) { return modifier == word; });
}

class Reader {
 public:
  explicit Reader(std::map<std::string, Kernel>* kernels) : kernels_(kernels) {}

  bool read(const std::string& text, std::string* why) {
    std::istringstream in(text);
    std::string line;
    for (uint32_t number = 1; std::getline(in, line); ++number) {
      if (line_of(line)) continue;
      *why = fmt::format("line {}: {}: {}", number, why_, line);
      return false;
    }
    if (inside_) *why = "the last kernel has no end";
    return !inside_;
  }

 private:
  bool refuse(const std::string& why) {
    why_ = why;
    return false;
  }

  bool line_of(std::string line) {
    const std::vector<std::string> note = split(line, " \t");
    if (note.size() == 4 && note[0] == "//" && note[1] == "registers") {
      machine_registers_[note[2]] = number_in(note[3].c_str());
      return true;
    }
    line = line.substr(0, line.find("//"));
    const std::vector<std::string> words = split(line, " \t");
    if (words.empty() || words[0] == ".pragma" || words[0] == "(" || words[0] == ")") return true;
    if (!inside_) return outside(words);
    if (words[0] == "}") return finish();
    if (words[0] == "{") return true;
    if (words[0][0] == '.') return declare(words);
    if (words[0].back() == ':') {
      labels_[words[0].substr(0, words[0].size() - 1)] = static_cast<uint32_t>(kernel_.code.size());
      return true;
    }
    return instruction(line);
  }

  bool outside(const std::vector<std::string>& words) {
    if (words[0] == ".visible" && words.size() > 2 && words[1] == ".entry") {
      kernel_ = Kernel{};
      kernel_.name = words[2].substr(0, words[2].find('('));
      registers_.clear(), labels_.clear(), symbols_.clear(), parameters_.clear(), branches_.clear();
      return true;
    }
    if (words[0] == ".param") return parameter(words);
    if (words[0] == "{") inside_ = true;
    return true;
  }

  bool parameter(const std::vector<std::string>& words) {
    uint32_t align = 0, bytes = 0;
    std::string name = words.back();
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i] == ".align" && i + 1 < words.size()) align = number_in(words[i + 1].c_str());
      const std::optional<Type> type = type_of(words[i].substr(1));
      if (words[i][0] == '.' && type) bytes = type->bits / 8;
    }
    if (!name.empty() && name.back() == ',') name.pop_back();
    if (const size_t open = name.find('['); open != std::string::npos) {
      bytes = number_in(name.c_str() + open + 1);
      name.resize(open);
    }
    if (bytes == 0) return refuse("a parameter without a size");
    align = align == 0 ? bytes : align;
    uint32_t& end = kernel_.parameter_bytes;
    end = (end + align - 1) / align * align;
    parameters_[name] = end;
    end += bytes;
    return true;
  }

  bool declare(const std::vector<std::string>& words) {
    if (words[0] == ".reg") {  // %r<33>;
      const std::string& name = words.back();
      const size_t open = name.find('<');
      const std::string prefix = name.substr(0, std::min(open, name.find(';')));
      const uint32_t count = open == std::string::npos ? 1 : number_in(name.c_str() + open + 1);
      if (kernel_.registers + count > kRegistersMax) return refuse("too many registers");
      registers_[prefix] = {kernel_.registers, count};
      kernel_.registers += count;
      return true;
    }
    if (words[0] != ".shared") return refuse("not supported");
    uint32_t align = 1;
    for (size_t i = 1; i + 1 < words.size(); ++i) {
      if (words[i] == ".align") align = std::max(1u, number_in(words[i + 1].c_str()));
    }
    const std::string& name = words.back();
    const size_t open = name.find('[');
    if (open == std::string::npos) return refuse("a shared variable without a size");
    uint32_t& end = kernel_.shared_bytes;
    end = (end + align - 1) / align * align;
    symbols_[name.substr(0, open)] = end;
    end += number_in(name.c_str() + open + 1);
    return end <= kSharedMax || refuse("too much shared memory");
  }

  std::optional<uint32_t> register_of(const std::string& name) const {
    const size_t digits = name.find_first_of("0123456789");
    if (name.empty() || name[0] != '%' || digits == std::string::npos) return std::nullopt;
    const auto found = registers_.find(name.substr(0, digits));
    if (found == registers_.end()) return std::nullopt;
    const uint32_t number = number_in(name.c_str() + digits);
    if (number >= found->second.second) return std::nullopt;
    return found->second.first + number;
  }

  bool operand(const std::string& text, Operand* out) {
    if (const auto reg = register_of(text)) {
      *out = {OperandKind::kRegister, {}, *reg, 0};
    } else if (const auto special = kSpecials.find(text); special != kSpecials.end()) {
      *out = {OperandKind::kSpecial, special->second, 0, 0};
    } else if (const auto symbol = symbols_.find(text); symbol != symbols_.end()) {
      *out = {OperandKind::kImmediate, {}, 0, symbol->second};
    } else if (text.size() == 10 && (text.starts_with("0f") || text.starts_with("0F"))) {
      *out = {OperandKind::kImmediate, {}, 0, std::strtoull(text.c_str() + 2, nullptr, 16)};
    } else if (!text.empty() && (std::isdigit(text[0]) || text[0] == '-')) {
      const uint64_t value = text[0] == '-'
                                 ? static_cast<uint64_t>(std::strtoll(text.c_str(), nullptr, 0))
                                 : std::strtoull(text.c_str(), nullptr, 0);
      *out = {OperandKind::kImmediate, {}, 0, value};
    } else {
      return refuse("an operand that is not known, " + text);
    }
    return true;
  }

  bool address(const std::string& text, Instruction* one) {
    const size_t plus = text.find('+');
    std::string base = text.substr(0, plus);
    if (plus != std::string::npos) one->offset = std::strtoll(text.c_str() + plus + 1, nullptr, 0);
    if (const auto found = parameters_.find(base); found != parameters_.end()) {
      one->offset += found->second;
      return true;
    }
    return operand(base, &one->base);
  }

  bool modifiers(const std::vector<std::string>& parts, Instruction* one) {
    std::vector<Type> types;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string& part = parts[i];
      if (const auto type = type_of(part)) {
        types.push_back(*type);
      } else if (one->op == Op::kAtom && kAtoms.contains(part)) {
        one->atom = kAtoms.at(part);
      } else if (one->op == Op::kSetp && kCompares.contains(part)) {
        one->compare = kCompares.at(part);
      } else if (part == "lo" || part == "hi" || part == "wide") {
        one->half = part == "lo" ? Half::kLow : part == "hi" ? Half::kHigh : Half::kWide;
      } else if (part == "shared") {
        one->space = Space::kShared;
      } else if (part == "param" || part == "const") {
        one->space = Space::kParam;
      } else if (one->op == Op::kShf && (part == "l" || part == "r")) {
        one->left = part == "l";
      } else if (one->op == Op::kBfind && part == "shiftamt") {
        one->left = true;
      } else if (part == "volatile" || part == "acquire" || part == "release") {
        one->ordered = one->bypass = true;
      } else if (part == "v2" || part == "v4") {
        vector_ = true;
      } else if (!is_ignored(part)) {
        return refuse("not supported, ." + part);
      }
    }
    if (!types.empty()) one->type = types[0];
    one->from = types.size() > 1 ? types[1] : one->type;
    if (one->half == Half::kWide) one->type.bits = static_cast<uint8_t>(one->from.bits * 2);
    return one->type.bits != 64 || !one->type.is_float || one->op == Op::kMov ||
           refuse("double precision is not supported");
  }

  bool instruction(std::string line) {
    const size_t end = line.find(';');
    if (end == std::string::npos) return refuse("an instruction over several lines");
    line.resize(end);
    Instruction one;
    vector_ = false;
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos) return true;
    if (line[at] == '@') {
      one.predicate_not = line[at + 1] == '!';
      const size_t begin = at + (one.predicate_not ? 2 : 1);
      at = line.find_first_of(" \t", begin);
      const auto reg = register_of(line.substr(begin, at - begin));
      if (!reg) return refuse("a predicate that is not known");
      one.predicate = static_cast<int32_t>(*reg);
      at = line.find_first_not_of(" \t", at);
      if (at == std::string::npos) return refuse("a predicate without an instruction");
    }
    const size_t after = std::min(line.find_first_of(" \t", at), line.size());
    const std::vector<std::string> parts = split(line.substr(at, after - at), ".");
    const auto op = kOps.find(parts[0]);
    if (op == kOps.end()) return refuse("an instruction that is not supported");
    one.op = op->second;
    if (!modifiers(parts, &one) || !operands(line.substr(after), &one)) return false;
    if (!is_sound(one)) return refuse("operands are missing, or of a type that is not supported");
    kernel_.code.push_back(one);
    return true;
  }

  // What the interpreter takes for granted.
  static bool is_sound(const Instruction& one) {
    const bool touches = one.op == Op::kLoad || one.op == Op::kStore || one.op == Op::kAtom;
    if (touches && (one.type.bits < 8 || (one.space == Space::kParam && one.op != Op::kLoad)))
      return false;
    switch (one.op) {
      case Op::kStore:
        return one.sources > 0;
      case Op::kBra:
      case Op::kRet:
      case Op::kTrap:
      case Op::kBar:
      case Op::kFence:
      case Op::kSleep:
        return true;
      case Op::kLoad:
        return one.destinations > 0;
      default:
        return one.destinations > 0 && one.sources > 0;
    }
  }

  bool operands(const std::string& text, Instruction* one) {
    std::vector<std::string> words = split(text, ", \t");
    if (one->op == Op::kBra) {
      if (words.size() != 1) return refuse("a branch without a target");
      branches_.emplace_back(static_cast<uint32_t>(kernel_.code.size()), words[0]);
      return true;
    }
    if (one->op == Op::kBar || one->op == Op::kFence || one->op == Op::kRet ||
        one->op == Op::kTrap || one->op == Op::kSleep)
      return true;
    bool in_braces = false, stores = one->op == Op::kStore;
    bool first = true;
    for (std::string word : words) {
      const bool opens = word[0] == '{', closes = word.back() == '}';
      if (opens) word.erase(0, 1), in_braces = true;
      if (closes) word.pop_back();
      const bool is_destination = !stores && (first || in_braces);
      if (word[0] == '[') {
        const std::string inner = word.substr(1, word.find(']') - 1);
        if (!address(inner, one)) return false;
      } else if (is_destination) {
        const auto reg = register_of(word.substr(0, word.find('|')));
        if (!reg || one->destinations == kOperandsMax)
          return refuse("a destination that is not known");
        one->destination[one->destinations++] = *reg;
      } else {
        if (one->sources == kOperandsMax) return refuse("too many operands");
        if (!operand(word, &one->source[one->sources++])) return false;
      }
      if (!in_braces || closes) first = false;
      if (closes) in_braces = false;
    }
    return true;
  }

  bool finish() {
    inside_ = false;
    if (kernel_.code.empty() || kernel_.code.back().op != Op::kRet) {
      Instruction end;
      end.op = Op::kRet;
      kernel_.code.push_back(end);
    }
    std::vector<bool> leads(kernel_.code.size() + 1, false);
    leads[0] = true;
    for (const auto& [at, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end() || found->second >= kernel_.code.size())
        return refuse("no label " + label);
      kernel_.code[at].target = found->second;
      leads[found->second] = true;
    }
    for (size_t i = 0; i < kernel_.code.size(); ++i) {
      const Op op = kernel_.code[i].op;
      if (op == Op::kBra || op == Op::kRet || op == Op::kTrap) leads[i + 1] = true;
    }
    std::vector<uint32_t> block_at(kernel_.code.size());
    for (uint32_t i = 0; i < kernel_.code.size(); ++i) {
      if (leads[i]) kernel_.first.push_back(i);
      block_at[i] = static_cast<uint32_t>(kernel_.first.size() - 1);
    }
    kernel_.first.push_back(static_cast<uint32_t>(kernel_.code.size()));
    for (Instruction& one : kernel_.code) {
      if (one.op == Op::kBra) one.target = block_at[one.target];
    }
    const auto found = machine_registers_.find(kernel_.name);
    kernel_.machine_registers =
        found == machine_registers_.end() ? kDefaultRegisters : found->second;
    assign_costs(&kernel_);
    build_graph();
    kernel_.meets = simt::immediate_post_dominators(kernel_.graph, {}, {});
    (*kernels_)[kernel_.name] = std::move(kernel_);
    return true;
  }

  void build_graph() {
    const auto blocks = static_cast<uint32_t>(kernel_.first.size() - 1);
    kernel_.graph.functions.push_back({kernel_.name, 0});
    for (uint32_t b = 0; b < blocks; ++b) {
      simt::Block block;
      block.name = fmt::format("B{}", b);
      for (uint32_t i = kernel_.first[b]; i < kernel_.first[b + 1]; ++i)
        block.instructions += kernel_.code[i].slots;
      const Instruction& last = kernel_.code[kernel_.first[b + 1] - 1];
      const uint32_t next = b + 1 < blocks ? b + 1 : simt::kExit;
      const bool always = last.predicate < 0;
      if (last.op == Op::kRet || last.op == Op::kTrap) {
        if (!always) block.successors.push_back(next);
        block.successors.push_back(simt::kExit);
      } else if (last.op == Op::kBra) {
        if (!always && last.target != next) block.successors.push_back(next);
        block.successors.push_back(last.target);
      } else {
        block.successors.push_back(next);
      }
      kernel_.graph.blocks.push_back(std::move(block));
    }
  }

  std::map<std::string, Kernel>* kernels_;
  std::map<std::string, uint32_t> machine_registers_;
  std::string why_;
  Kernel kernel_;
  bool inside_ = false;
  bool vector_ = false;
  std::map<std::string, std::pair<uint32_t, uint32_t>> registers_;  // first, count
  std::map<std::string, uint32_t> labels_;
  std::map<std::string, uint64_t> symbols_;
  std::map<std::string, uint32_t> parameters_;
  std::vector<std::pair<uint32_t, std::string>> branches_;
};

}  // namespace

bool read_ptx(const std::string& text, std::map<std::string, Kernel>* kernels, std::string* why) {
  return Reader(kernels).read(text, why);
}

}  // namespace warpcache::edge_sim
